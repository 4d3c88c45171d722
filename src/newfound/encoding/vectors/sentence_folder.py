"""The folder of a sentence-transformers model: its modules, its pooling and its prompts.

Only JSON files are read, so sentence-transformers need not be installed to find out whether the
backbone of this package can run the model.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newfound.encoding.families import unsupported
from newfound.errors import DamagedFileError, InputError
from newfound.files import check_fields, check_items, parse_json, read_regular

OWN_MODULES = ("Transformer", "Pooling", "Normalize")  # that the backbone and a head replace
OWN_POOLINGS = ("cls", "mean")
PREFERRED = "clustering"  # name of a prompt that is used by default
OLD_POOLING = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}


@dataclass(frozen=True)
class SentenceFolder:
    """What the JSON files of an encoder's folder say.

    Attributes
    ----------
    path : Path
    config : dict
        Content of config.json; empty without one.
    modules : tuple of (str, str)
        Class and folder of each module, in their order; none without a modules.json.
    pooling : str or None
        How token vectors are pooled; None without a pooling module.
    prompts : dict of str to str
        Prompts by name.
    default_prompt : str or None
        Name of the prompt that the model uses by default.
    """

    path: Path
    config: dict[str, Any]
    modules: tuple[tuple[str, str], ...]
    pooling: str | None
    prompts: dict[str, str]
    default_prompt: str | None

    @property
    def family(self) -> str | None:
        """The `model_type` of config.json."""
        found = self.config.get("model_type")
        return found if isinstance(found, str) else None

    @property
    def foreign_modules(self) -> list[str]:
        """Classes of the modules that the backbone of this package does not replace."""
        names = [kind.rpartition(".")[2] for kind, _ in self.modules]
        found = [name for name in names if name not in OWN_MODULES]
        if self.pooling is not None and self.pooling not in OWN_POOLINGS:
            found.append(f"Pooling ({self.pooling})")
        return found

    @property
    def own_family(self) -> bool:
        """Whether the backbone of this package runs the transformer."""
        return unsupported(self.config) is None

    def prompt(self, given: str | None) -> tuple[str, str | None]:
        """Return the text to put before every text, and its name among the model's prompts.

        Parameters
        ----------
        given : str or None
            Name of a prompt, or the text itself; None chooses the model's prompt for clustering,
            or its default.

        Returns
        -------
        text : str
        name : str or None
        """
        if given is not None:
            return self.prompts.get(given, given), given if given in self.prompts else None
        named = [name for name in self.prompts if name.lower() == PREFERRED]
        name = named[0] if named else self.default_prompt
        return (self.prompts[name], name) if name in self.prompts else ("", None)


def read_folder(path: Path) -> SentenceFolder:
    """Read the JSON files of an encoder's folder, or raise InputError."""
    try:
        modules = tuple(_modules(path))
        prompts, default = _prompts(path)
        return SentenceFolder(
            path=path,
            config=_json(path / "config.json", dict) or {},
            modules=modules,
            pooling=_pooling(path, modules),
            prompts=prompts,
            default_prompt=default,
        )
    except DamagedFileError as error:
        raise InputError(f"{path}: {error}; save the encoder again") from error


def _modules(path: Path) -> list[tuple[str, str]]:
    """Return the class and the folder of each module in modules.json."""
    listed = _json(path / "modules.json", list) or []
    check_items(listed, dict, "modules.json")
    for module in listed:
        check_fields(module, {"type": str, "path": str}, "modules.json")
    return [(module["type"], module["path"]) for module in listed]


def _pooling(path: Path, modules: tuple[tuple[str, str], ...]) -> str | None:
    """Return the pooling of the first pooling module, None without one."""
    place = next((folder for kind, folder in modules if kind.endswith(".Pooling")), "1_Pooling")
    config = _json(path / place / "config.json", dict)
    if config is None:
        return None
    mode = config.get("pooling_mode")
    if mode is None:
        active = [name for name, on in config.items() if name.startswith("pooling_mode_") and on]
        mode = OLD_POOLING.get(active[0], active[0]) if len(active) == 1 else "several"
    return mode if isinstance(mode, str) else "several"


def _prompts(path: Path) -> tuple[dict[str, str], str | None]:
    """Return the prompts by name, and the name of the default one."""
    where = "config_sentence_transformers.json"
    config = _json(path / where, dict) or {}
    prompts = config.get("prompts") or {}
    check_fields({"prompts": prompts}, {"prompts": dict}, where)
    default = config.get("default_prompt_name")
    found = {name: text for name, text in prompts.items() if isinstance(text, str)}
    return found, default if isinstance(default, str) else None


def _json(path: Path, kind: type) -> Any:
    """Return the JSON value in a file, None if there is no such file."""
    try:
        return parse_json(read_regular(path), kind, path.name)
    except FileNotFoundError:
        return None
