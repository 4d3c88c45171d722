"""The runs that the options of a benchmark command describe, in order."""

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from newfound.bench.datasets import DATA_SETS
from newfound.bench.published import NAMES
from newfound.errors import InputError
from newfound.wording import suggestion

if TYPE_CHECKING:
    from newfound.bench.runner import Plan


def make_plans(options: argparse.Namespace, methods: Sequence[str]) -> list["Plan"]:
    """Return all runs; those that share their pretraining are consecutive."""
    from newfound.bench.runner import Plan

    settings = dict(setting(pair) for pair in options.settings)
    search, published = getattr(options, "search", False), getattr(options, "published", False)
    if search and published:
        raise InputError("--search hides labels of drawn splits; leave out --published")
    if search and any(known == 0 for _, known, _ in splits(options)):
        raise InputError("--search hides known categories, so --known-ratio must be above 0")
    return [
        Plan(
            data_set=data_set,
            method=method,
            encoder=options.encoder,
            seed=seed,
            known_ratio=known,
            labelled_ratio=labelled,
            given_k=getattr(options, "categories", "given") == "given",
            effort=options.effort,
            max_tokens=options.max_tokens,
            settings=settings,
            search=search,
            published=published,
        )
        for data_set in data_sets(options.data_set, NAMES if published else DATA_SETS)
        for seed, known, labelled in splits(options)
        for method in methods
    ]


def splits(options: argparse.Namespace) -> list[tuple[int, float, float]]:
    """Return (seed, known ratio, labelled ratio) of every split in the options."""
    return [
        (seed, known, labelled)
        for seed in numbers(options.seeds)
        for known in ratios(options.known_ratio, "--known-ratio", none=True)
        for labelled in ratios(options.labelled_ratio, "--labelled-ratio")
    ]


@contextmanager
def caches(given: Path | None, shared: Sequence[str]) -> Iterator[Callable[[str], Path | None]]:
    """Yield a function that returns the cache folder of runs that share what it keeps.

    `shared` has a name for each run, the same for runs that share their pretraining. If the user
    names no folder, those get a temporary one. It is removed when the next name begins, because no
    later run would read it.
    """
    if given is not None:
        yield lambda name: given
        return
    runs = Counter(shared)
    with tempfile.TemporaryDirectory(prefix="newfound-bench-") as root:

        def place(name: str) -> Path | None:
            own = Path(root) / name
            for other in Path(root).iterdir():
                if other != own:
                    shutil.rmtree(other)
            return own if runs[name] > 1 else None

        yield place


def split_name(plan: "Plan") -> str:
    """Return a name that runs of the same split share."""
    return f"{plan.data_set} {plan.seed} {plan.known_ratio} {plan.labelled_ratio}"


def names(text: str, flag: str) -> list[str]:
    """Return the distinct names of a comma-separated list."""
    found = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not found:
        raise InputError(f"{flag} is empty; give at least one name")
    return found


def data_sets(text: str, offered: Sequence[str] = DATA_SETS) -> list[str]:
    """Return the data sets in a list, after checking their names."""
    chosen = list(offered) if text == "all" else names(text, "--data-set")
    for name in chosen:
        if name not in offered:
            listed = f"choose all or some of {', '.join(offered)}"
            advice = suggestion(name, (*offered, "all"), listed)
            raise InputError(f"the data set {name!r} is unknown; {advice}")
    return chosen


def numbers(text: str) -> list[int]:
    """Return the whole numbers of a list such as `0-4` or `0,2,5-7`."""
    found: list[int] = []
    for part in names(text, "--seeds"):
        low, dash, high = part.partition("-")
        try:
            found.extend(range(int(low), int(high if dash else low) + 1))
        except ValueError:
            found = []
            break
    if not found:
        raise InputError(f"--seeds takes numbers such as 0-4 or 0,2, not {text!r}")
    return list(dict.fromkeys(found))


def ratios(text: str, flag: str, *, none: bool = False) -> list[float]:
    """Return the shares in a list: above 0 (or 0 if `none` is True) and at most 1."""
    try:
        found = [float(part) for part in names(text, flag)]
    except ValueError:
        found = []
    if not found or not all(0 < ratio <= 1 or (none and ratio == 0) for ratio in found):
        raise InputError(f"{flag} takes shares such as 0.75 or 0.25,0.5,0.75, not {text!r}")
    return found


def setting(pair: str) -> tuple[str, str]:
    """Return the name and the value of NAME=VALUE."""
    name, equals, value = pair.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--set takes NAME=VALUE, not {pair!r}")
    return name.strip(), value.strip()
