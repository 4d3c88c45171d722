"""Write a file or a folder under a temporary name, flush it to disk and rename it."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from newfound.errors import InputError, PlaceTakenError
from newfound.files import swapping
from newfound.files.leftovers import make_temporary, remove, temporary_for_file
from newfound.files.locks import lock_path, undisturbed, writer_lock
from newfound.files.syncing import sync_file, sync_folder, sync_tree


@contextmanager
def write_atomically(path: Path, *, replace: bool = True) -> Iterator[Path]:
    """Yield a temporary path; rename it to `path` when the block succeeds.

    Parameters
    ----------
    path : Path
        File to write.
    replace : bool, default True
        Whether an existing file is replaced. Otherwise the new file gets another name if there is
        one at the end.

    Yields
    ------
    Path
        Temporary file of the same name; it is deleted if the block fails.

    Raises
    ------
    PlaceTakenError
        If the new file got another name.
    InputError
        If the file cannot be written.
    """
    own: swapping.Identity | None = None
    try:
        with temporary_for_file(path) as folder:
            temporary = folder / path.name
            yield temporary
            temporary.chmod(0o666 & ~_umask())  # some writers make a private file
            sync_file(temporary)
            own = swapping.identity(temporary)
            if replace:
                os.replace(temporary, path)
            else:
                _name(temporary, path)
            sync_folder(path.parent)
    except OSError as error:
        raise InputError(cannot_write(path, error)) from error
    except (KeyboardInterrupt, SystemExit) as interrupt:
        _note(interrupt, path, own is not None and swapping.identity(path) == own)
        raise


@contextmanager
def write_alone(path: Path, *, replace: bool) -> Iterator[Path]:
    """Write a file as `write_atomically` does, but only one process at a time.

    Parameters
    ----------
    path : Path
    replace : bool
        Whether an existing file is replaced.

    Yields
    ------
    Path
        Temporary file of the same name.

    Raises
    ------
    InputError
        Also if another process is writing the file.
    """
    try:
        with (
            writer_lock(lock_path(path, False), path),
            write_atomically(path, replace=replace) as temporary,
        ):
            yield temporary
    except OSError as error:
        raise InputError(cannot_write(path, error)) from error


def _name(temporary: Path, path: Path) -> None:
    """Give a complete file its name; if the name is taken, give it another one and say so."""
    names = itertools.chain([path], _other_names(path))
    for name in names:
        try:
            os.link(temporary, name)
        except FileExistsError:
            continue
        except OSError:  # the file system has no second names
            if os.path.lexists(name):
                continue
            os.replace(temporary, name)
        if name == path:
            return
        raise PlaceTakenError(
            f"{path} was created by another program meanwhile, so it is not replaced; the new file "
            f"is {name}"
        )


def _other_names(path: Path) -> Iterator[Path]:
    """Yield names like that of a file or folder, with a number."""
    for number in itertools.count(2):
        yield path.with_name(f"{path.stem}-{number}{path.suffix}")


@contextmanager
def write_folder(
    folder: Path, marker: str, check: Callable[[Path], None] | None = None
) -> Iterator[Path]:
    """Yield an empty folder that replaces `folder` when the block succeeds.

    If the block fails, nothing is left behind. Only one process at a time writes a folder.

    Parameters
    ----------
    folder : Path
    marker : str
        Name of the file that marks such a folder as complete. Where the folder cannot be replaced
        as a whole, this file is moved away first and written last.
    check : callable, optional
        Raises InputError about a folder that must not be replaced. It is called at the beginning
        and about what is there at the end. If that has changed and must not be replaced, the new
        folder gets another name.

    Yields
    ------
    Path
        Temporary folder.

    Raises
    ------
    PlaceTakenError
        If the new folder got another name.
    InputError
        If the folder cannot be written, or another process is writing it.
    """
    try:
        place = folder.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
        raise InputError(f"cannot write {folder}: {error}; choose another place") from error
    made = [parent for parent in place.parents if not parent.exists()]
    # A mount point and the working directory cannot be renamed; their content can be replaced.
    inside = place.is_dir() and (os.path.ismount(place) or place == Path.cwd())
    writing = _Writing(folder, place, marker, inside, check or _replaceable)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with writer_lock(lock_path(place, inside), folder) as held:
            if held:
                swapping.recover(place, inside, marker)
            writing.check(place)
            try:
                writing.begin()
                yield writing.new
                writing.finish()
            finally:
                undisturbed(writing.clean_up)
    except OSError as error:
        raise InputError(cannot_write(folder, error)) from error
    except InputError as error:
        # The user does not know the name of the temporary folder.
        raise type(error)(str(error).replace(str(writing.new), str(folder))) from error
    except (KeyboardInterrupt, SystemExit) as interrupt:
        _note(interrupt, folder, writing.done())
        raise
    finally:
        for parent in [] if writing.done() else made:
            with suppress(OSError):  # another process may have written there
                parent.rmdir()


class _Writing:
    """The steps of `write_folder`; each can be interrupted and undone."""

    def __init__(
        self,
        folder: Path,
        place: Path,
        marker: str,
        inside: bool,
        check: Callable[[Path], None],
    ) -> None:
        self.folder, self.place, self.marker = folder, place, marker
        self.inside, self.check = inside, check
        self.new = place  # until there is a temporary folder
        self.own: swapping.Identity | None = None
        self.names: set[str] = set()
        self.replaced: bool | None = None  # None until it is certain

    def begin(self) -> None:
        """Create the temporary folder."""
        self.new = make_temporary(self.place.name, self.place if self.inside else self.place.parent)
        self.own = swapping.identity(self.new)

    def finish(self) -> None:
        """Replace the folder; what was there is checked once more when nobody can reach it."""
        self.new.chmod(0o777 & ~_umask())  # mkdtemp makes a private folder
        sync_tree(self.new)
        self.names = {entry.name for entry in self.new.iterdir()}
        try:
            self.check(self.place)
            if self.inside:
                old: Path | None = swapping.swap_content(self.place, self.new, self.marker)
            else:
                old = swapping.swap(self.place, self.new)
            if old is not None:
                self.check(old)
        except InputError as error:
            self.undo()
            kept = self._free_name()
            os.rename(self.new, kept)
            raise PlaceTakenError(
                f"{self.folder} was created or changed by another program meanwhile, so it is not "
                f"replaced; the new files are in {kept}"
            ) from error
        sync_folder(self.place if self.inside else self.place.parent)

    def done(self) -> bool:
        """Return whether the new folder is in its place."""
        if self.replaced is not None:
            return self.replaced
        if self.own is None:
            return False
        if self.inside:
            swapped = swapping.content_swapped(self.place, self.new, self.marker)
            return self.new.is_dir() and swapped
        return swapping.identity(self.place) == self.own

    def undo(self) -> None:
        """Put the old folder back."""
        if self.inside:
            swapping.swap_content_back(self.place, self.new, self.names)
        elif self.own is not None:
            swapping.swap_back(self.place, self.new, self.own)

    def clean_up(self) -> None:
        """Remove the temporary folder, and the old one if it has been replaced.

        Whether the new folder stays is decided once: after an interrupt while the old one is being
        deleted, there is nothing left that could be put back.
        """
        if self.own is None:  # an interrupt may have come right after the folder was created
            swapping.remove_new(self.place, self.inside)
            return
        aside = swapping.aside_of(self.new)
        if self.replaced is None:
            old = aside if aside.is_dir() else self.new
            if not self.done() or (old.is_dir() and not self._may_go(old)):
                self.undo()
            self.replaced = self.done()
        if self.replaced:
            remove(aside)
        elif aside.is_dir():  # its name is taken by another program
            os.rename(aside, self._free_name())
        remove(self.new)

    def _may_go(self, old: Path) -> bool:
        """Return whether the old folder may be removed; an interrupt may have come before that."""
        try:
            self.check(old)
        except InputError:
            return False
        return True

    def _free_name(self) -> Path:
        """Return a free name beside the one that is taken."""
        parent = self.place if self.inside else self.place.parent
        numbers = itertools.count(2)
        names = (parent / f"{self.place.name}-{number}" for number in numbers)
        return next(name for name in names if not os.path.lexists(name))


def _replaceable(folder: Path) -> None:
    """Accept any folder."""


def _note(interrupt: BaseException, path: Path, written: bool) -> None:
    """Let an interrupt tell what was written; what was inside a temporary folder does not count."""
    interrupt.__notes__ = [f"{path} was written"] if written else []


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    umask = os.umask(0)
    os.umask(umask)
    return umask


def cannot_write(path: Path, error: OSError) -> str:
    """Return the message on a path that cannot be written."""
    return f"cannot write {path}: {error.strerror or error}; free space or choose another place"
