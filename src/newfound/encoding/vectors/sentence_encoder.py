"""Any model that sentence-transformers loads, as a frozen encoder (extra `sentence-transformers`).

Weights are read from safetensors only, because unpickling can run code. Code that comes with a
model runs only if the user says so.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from newfound.encoding.loading import find_folder
from newfound.encoding.parts import MOST_CHARACTERS, MOST_TOKENS, Parts, split
from newfound.encoding.vectors.sentence_folder import SentenceFolder, read_folder
from newfound.errors import InputError, reason
from newfound.files import check_fields
from newfound.progress import Advance
from newfound.wording import plural

PART = 512  # texts that are encoded before progress is shown
DIGESTED = (".json", ".safetensors", ".txt", ".model", ".jinja", ".py")  # files that may matter
# Of a model on the Hub.
FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
CODE = "*.py"


class SentenceEncoder:
    """A model that sentence-transformers runs.

    Parameters
    ----------
    name : str
        Folder or Hub id, as the user gave it.
    prompt : str, optional
        Name of one of the model's prompts, or a text to put before every text; by default the
        model's own choice (see `SentenceFolder.prompt`).
    max_tokens : int, optional
        Tokens of a text that are used; by default all. A text with more tokens than the model
        states to read at once is split into parts, whose vectors are averaged.
    trust_remote_code : bool
        Whether code that comes with the model may run.
    expected : str, optional
        Fingerprint that the model must have.
    """

    kind = "sentence-transformers"
    device = torch.device("cpu")

    def __init__(
        self,
        name: str,
        *,
        prompt: str | None = None,
        max_tokens: int | None = None,
        trust_remote_code: bool = False,
        expected: str | None = None,
    ) -> None:
        self.name, self.given_prompt, self.max_tokens = name, prompt, max_tokens
        self.trust_remote_code, self.expected = trust_remote_code, expected
        self._folder: SentenceFolder | None = None
        self._model: Any = None
        self._digest: str | None = None
        self.long = 0  # texts that were split

    @property
    def folder(self) -> SentenceFolder:
        """The folder of the model."""
        if self._folder is None:
            patterns = [*FILES, CODE] if self.trust_remote_code else FILES
            self._folder = read_folder(find_folder(self.name, patterns))
        return self._folder

    @property
    def width(self) -> int:
        """Dimensions of a vector."""
        found = self._loaded().get_embedding_dimension()
        if not isinstance(found, int):
            raise InputError(f"the encoder {self.name} does not state the width of its vectors")
        return found

    @property
    def fingerprint(self) -> str:
        """A hash of the model's files, the prompt and the limit on tokens."""
        if self._digest is None:
            digest = hashlib.sha256()
            for path in _files(self.folder.path):
                digest.update(str(path.relative_to(self.folder.path)).encode() + b"\0")
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
            digest.update(json.dumps([self.prompt, self.max_tokens]).encode())
            self._digest = digest.hexdigest()
        return self._digest

    @property
    def left_out(self) -> str | None:
        """What the backbone of this package leaves out; None if it cannot run the model."""
        if not self.folder.own_family:
            return None
        parts = [f"its {name}" for name in self.folder.foreign_modules]
        return " and ".join([*parts, "its prompt"] if self.prompt else parts)

    @property
    def prompt(self) -> str:
        """The text that is put before every text."""
        return self.folder.prompt(self.given_prompt)[0]

    def encode(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """Return the vectors [N, width] of texts, float32."""
        model = self._loaded()
        parts = []
        for start in range(0, len(texts), PART):
            pieces = [self._pieces(model, text) for text in texts[start : start + PART]]
            flat = [piece for text in pieces for piece in text]
            found = model.encode(flat, prompt=self.prompt or None, show_progress_bar=False)
            vectors = np.asarray(found, np.float32)
            if len(flat) > len(pieces):
                counts = np.fromiter(map(len, pieces), np.int64, len(pieces))
                vectors = Parts(counts).mean(torch.from_numpy(vectors)).numpy()
                self.long += int((counts > 1).sum())
            parts.append(vectors)
            if advance:
                advance(len(pieces))
        return np.concatenate(parts) if parts else np.empty((0, self.width), np.float32)

    def _pieces(self, model: Any, text: str) -> list[str]:
        """Return a text in pieces that the model reads whole, if its tokeniser can tell where."""
        tokenizer: Any = getattr(model, "tokenizer", None)
        most = model.max_seq_length
        if most is None or len(text) <= most // 2 or not getattr(tokenizer, "is_fast", False):
            return [text]
        text = text[:MOST_CHARACTERS]
        special = len(tokenizer(self.prompt)["input_ids"])
        found = tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        places = found["offset_mapping"][: (self.max_tokens or MOST_TOKENS) - special]
        room = most - special
        if len(places) <= room or room < 1:  # sentence-transformers truncates by itself
            return [text]
        return [text[places[i][0] : places[j - 1][1]] for i, j in split(len(places), room)]

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` needs; a folder is stored with its full path."""
        place = Path(self.name)
        return {
            "kind": self.kind,
            "name": str(place.resolve()) if place.is_dir() else self.name,
            "prompt": self.prompt,
            "max_tokens": self.max_tokens,
            "trust_remote_code": self.trust_remote_code,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], fingerprint: str) -> "SentenceEncoder":
        """Return the model that `to_dict` describes; it is loaded when texts are encoded."""
        kinds: dict[str, type | tuple[type, ...]] = {
            "name": str,
            "prompt": str,
            "max_tokens": (int, type(None)),
        }
        check_fields(value, kinds, "vectors.json, encoder")
        return cls(
            value["name"],
            prompt=value["prompt"],
            max_tokens=value["max_tokens"],
            # A saved model may come from someone else: it cannot allow code to run.
            trust_remote_code=False,
            expected=fingerprint,
        )

    def notes(self) -> list[str]:
        """Return which prompt is put before every text, and how many texts were split."""
        notes = []
        text, name = self.folder.prompt(self.given_prompt)
        if text:
            named = f" {name!r}" if name else ""
            notes.append(
                f"the prompt{named} of the encoder {self.name} is put before every text: {text!r}"
            )
        if self.long:
            notes.append(
                f"{plural(self.long, 'text is', 'texts are')} longer than the encoder {self.name} "
                "reads at once: split into overlapping parts, whose vectors are averaged"
            )
        return notes

    def _loaded(self) -> Any:
        """Return the model on its device, loaded at the first call."""
        if self._model is None:
            self._check_files()
            self._model = self._load()
        return self._model.to(self.device)

    def _check_files(self) -> None:
        """Raise InputError for files that changed, would be unpickled, or need code to run."""
        folder = self.folder
        if self.expected is not None and self.fingerprint != self.expected:
            raise InputError(
                f"the encoder {self.name} has changed since the model was fitted; restore it, or "
                "fit again"
            )
        for path in folder.path.rglob("pytorch_model.bin"):
            if not any(path.parent.glob("*.safetensors")):
                raise InputError(
                    f"the encoder {self.name} has {path.name} in place of model.safetensors; it is "
                    "not read, because unpickling can run code: save the encoder again with "
                    "sentence-transformers"
                )
        foreign = [kind for kind, _ in folder.modules if not kind.startswith("sentence_transform")]
        if foreign and not self.trust_remote_code:
            raise InputError(self._needs_code(f"the module {foreign[0]}"))

    def _needs_code(self, what: str) -> str:
        """Return the message on a model that comes with code."""
        return (
            f"the encoder {self.name} comes with code of its own ({what}), which is not run; if "
            "you trust its author, allow it with --trust-remote-code (trust_remote_code=True)"
        )

    def _load(self) -> Any:
        """Return the model, or raise InputError."""
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise InputError(
                f"the encoder {self.name} ({self.folder.family or 'no transformer'}) is one that "
                "sentence-transformers runs, which is not installed; install "
                "newfound[sentence-transformers]"
            ) from error
        kind: Any = torch.float32 if self.device.type == "cpu" else "auto"
        try:
            with _quiet():
                model = SentenceTransformer(
                    str(self.folder.path),
                    device=str(self.device),
                    trust_remote_code=self.trust_remote_code,
                    local_files_only=not self.trust_remote_code,
                    model_kwargs={"use_safetensors": True, "dtype": kind},
                )
        except Exception as error:  # whatever the model's modules raise
            if "trust_remote_code" in str(error):
                raise InputError(self._needs_code(str(self.folder.family))) from error
            raise InputError(
                f"sentence-transformers cannot load the encoder {self.name}: {reason(error)}"
            ) from error
        if self.max_tokens is not None and model.max_seq_length is not None:
            model.max_seq_length = min(self.max_tokens, model.max_seq_length)
        model.default_prompt_name = None
        return model.eval()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the progress bars and the advice of the transformers library off the terminal."""
    from transformers.utils import logging

    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a model that may matter, in the order of their names."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in DIGESTED and path.is_file():
            yield path
