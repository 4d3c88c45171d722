"""Settings of a run: each field holds its default, its range and its help text.

Command-line flags and the library's parameters are generated from these fields. The
hyper-parameters of a method are fields of a dataclass in the method's own module; `override`
applies a user's choices to them.
"""

import dataclasses
import math
import os
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from newfound.errors import InputError
from newfound.wording import suggestion

Effort = Literal["fast", "balanced", "best"]
EFFORTS: tuple[str, ...] = ("fast", "balanced", "best")
Layers = int | Literal["all"]  # how many of the last layers learn


def setting(
    default: Any, help: str, *, low: float = 0, high: float = math.inf, flag: str | None = None
) -> Any:
    """Return a dataclass field that carries its help text, range and command-line flag.

    Parameters
    ----------
    default : object
        Default value of the field.
    help : str
        Help text of the flag.
    low, high : float
        Range of a numeric field, both ends included.
    flag : str, optional
        Flag of the command line; by default the field's name with dashes.

    Returns
    -------
    dataclasses.Field
    """
    return field(default=default, metadata={"help": help, "range": (low, high), "flag": flag})


@dataclass(frozen=True)
class RunConfig:
    """Settings of a run; the default of None depends on the encoder or the device."""

    method: str = setting(
        "newfound", "method that finds the categories; `newfound methods` lists them"
    )
    encoder: str = setting(
        "minilm",
        "short name (minilm, mpnet, bert, multilingual), folder, Hub id, or the address of an "
        "OpenAI-compatible embedding service with the model after #, such as https://host/v1#model",
    )
    n_categories: int | Literal["auto"] = setting(
        "auto",
        "number of categories, known ones included; auto estimates it",
        low=1,
        flag="--categories",
    )
    effort: Effort | None = setting(
        None,
        "fast trains a small head on the frozen encoder; balanced takes more time, for more "
        "repetitions or for training the last layers, depending on the method; best trains all "
        "layers (default: best on a GPU, balanced on a CPU)",
    )
    seed: int = setting(
        0,
        "random seed; on a CPU, the same seed gives the same result on the same machine",
        high=2**32 - 1,
    )
    device: str | None = setting(None, "cpu, cuda or cuda:N (default: cuda if available)")
    pooling: Literal["cls", "mean"] | None = setting(
        None, "pooling of token vectors (default: that of the encoder's training; cls if unknown)"
    )
    prompt: str | None = setting(
        None,
        "text to put before every text, or the name of one of the encoder's prompts (default: the "
        "encoder's own prompt for clustering, if it has one); the encoder stays frozen",
    )
    trust_remote_code: bool = setting(
        False, "run code that comes with the encoder; only for encoders whose author you trust"
    )
    max_tokens: int | None = setting(
        None,
        "use only the first so many tokens of each text (default: all; texts longer than the "
        "encoder reads at once are split into parts)",
        low=3,
    )
    validation_share: float = setting(
        0.15,
        "share of the labelled texts of each category that is held out and decides when training "
        "stops",
        high=0.9,
    )
    cache: str | None = setting(
        None,
        "folder that caches the output of frozen layers for later runs (default: no cache)",
    )
    fit_texts: int = setting(
        50_000,
        "of a table with more texts, a sample of this size is fitted; every text is assigned by "
        "the fitted model",
        low=100,
    )
    outside: float | None = setting(
        None,
        "share of the unlabelled texts to mark as fitting nowhere, from 0 to 1; they keep their "
        "category (default: no text is marked)",
        high=1,
    )
    false_alarms: float | None = setting(
        None,
        "instead of --outside: share of texts of known categories that may be marked by mistake, "
        "from 0 to 1 (default: no text is marked)",
        high=1,
    )


def check_marking(outside: float | None, false_alarms: float | None, *, labelled: bool) -> None:
    """Raise InputError for an invalid rule for texts that fit nowhere.

    `labelled` is True if any text has a label.
    """
    if outside is not None and false_alarms is not None:
        raise InputError(
            "a share of texts (--outside, outside) and a false-alarm rate (--false-alarms, "
            "false_alarms) exclude each other; give one of them"
        )
    for name, value in (("outside", outside), ("false_alarms", false_alarms)):
        if value is not None and not 0 <= value <= 1:
            raise InputError(f"{flag_of(name)} must be from 0 to 1, not {value:g}")
    if false_alarms is not None and not labelled:
        raise InputError(
            "a false-alarm rate (--false-alarms, false_alarms) needs labelled texts, and there are "
            "none; give a share of texts (--outside, outside) instead"
        )


ConfigType = TypeVar("ConfigType")


def settings_of(config: Any) -> list[tuple[str, Any, Any, str]]:
    """Return (name, type, default, help) of every field of a configuration class."""
    hints = typing.get_type_hints(config)
    return [
        (f.name, hints[f.name], f.default, f.metadata.get("help", ""))
        for f in dataclasses.fields(config)
    ]


def flag_of(name: str) -> str:
    """Return the command-line flag of a field of RunConfig."""
    chosen = {f.name: f.metadata["flag"] for f in dataclasses.fields(RunConfig)}[name]
    return chosen or "--" + name.replace("_", "-")


def override(
    config: ConfigType,
    changes: Mapping[str, Any],
    what: str,
    spelt: Callable[[str], str] | None = None,
) -> ConfigType:
    """Return a copy of a configuration with changed settings.

    Parameters
    ----------
    config : dataclass
    changes : mapping of str to object
        New values by setting; strings are converted to the setting's type.
    what : str
        Owner of the settings, for error messages: "method dpn".
    spelt : callable, optional
        Maps a setting's name to the way the user wrote it, such as a flag.

    Returns
    -------
    dataclass
        Of the same class as `config`.

    Raises
    ------
    InputError
        If a setting does not exist, or its value has the wrong type or is out of range.

    Examples
    --------
    >>> override(RunConfig(), {"seed": "7"}, "the run").seed
    7
    """
    known = {name: kind for name, kind, _, _ in settings_of(type(config))}
    ranges = {f.name: f.metadata["range"] for f in dataclasses.fields(type(config))}  # type: ignore[arg-type]
    checked = {}
    for name, value in changes.items():
        if name not in known:
            advice = suggestion(name, known, f"it has {', '.join(sorted(known))}")
            raise InputError(f"{what} has no setting {name!r}; {advice}")
        where = spelt(name) if spelt else f"{what}: {name}"
        checked[name] = _checked(known[name], value, ranges[name], where)
    return dataclasses.replace(config, **checked)  # type: ignore[type-var]


def describe_type(kind: Any) -> str:
    """Return a setting's type as a help text shows it.

    Examples
    --------
    >>> describe_type(int | Literal["auto"])
    'auto|int'
    """
    if typing.get_origin(kind) is Literal:
        return "|".join(map(str, typing.get_args(kind)))
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        parts = [p for p in typing.get_args(kind) if p is not type(None)]
        parts.sort(key=lambda part: typing.get_origin(part) is not Literal)
        return "|".join(describe_type(part) for part in parts)
    return {bool: "true|false"}.get(kind, getattr(kind, "__name__", str(kind)))


def _options(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type itself."""
    return (
        typing.get_args(kind)
        if typing.get_origin(kind) in (typing.Union, types.UnionType)
        else (kind,)
    )


def _checked(kind: Any, value: Any, bounds: tuple[float, float], where: str) -> Any:
    """Return the value converted to the field's type, or raise InputError."""
    low, high = bounds
    for option in _options(kind):
        converted = _convert(option, value)
        if converted is _INVALID:
            continue
        number = isinstance(converted, int | float) and not isinstance(converted, bool)
        if number and not (low <= converted <= high and converted != math.inf):
            limits = f"at least {low}" if high == math.inf else f"from {low} to {high}"
            raise InputError(f"{where} must be {limits}, not {value}")
        return converted
    raise InputError(f"{where} must be {_in_words(kind)}, not {value!r}")


def _in_words(kind: Any) -> str:
    """Return the permitted values of a setting for a sentence: `auto or a whole number`."""
    words: list[str] = []
    for option in _options(kind):
        if typing.get_origin(option) is Literal:
            words[:0] = map(str, typing.get_args(option))
        elif option is not type(None):
            names = {bool: "true or false", int: "a whole number", float: "a number"}
            words.append(names.get(option, "a string"))
    return " or ".join(words)


_INVALID = object()


def _convert(option: Any, value: Any) -> Any:
    """Return the value converted to one type, _INVALID where that is impossible."""
    if option is type(None):
        return None if value is None or value == "none" else _INVALID
    if typing.get_origin(option) is Literal:
        return value if isinstance(value, str) and value in typing.get_args(option) else _INVALID
    if option is bool:
        if isinstance(value, str):
            return {"true": True, "false": False}.get(value.lower(), _INVALID)
        return value if isinstance(value, bool) else _INVALID
    if option is str:
        return os.fspath(value) if isinstance(value, str | os.PathLike) else _INVALID
    if isinstance(value, bool):
        return _INVALID
    if option is int:
        if isinstance(value, float) and not value.is_integer():
            return _INVALID
        try:
            return int(value)
        except (TypeError, ValueError, OverflowError):
            return _INVALID
    if option is float:
        try:
            return float(value)
        except (TypeError, ValueError):
            return _INVALID
    return _INVALID
