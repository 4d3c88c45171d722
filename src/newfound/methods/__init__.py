"""The methods: one file each, one entry each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from newfound.config import override
from newfound.errors import InputError
from newfound.methods import dpn, newfound
from newfound.task import Fitted


@dataclass(frozen=True)
class Method:
    """How a method is called and what to tell a user of it."""

    fit: Callable[..., Fitted]  # fit(task, encoder, config, seed=, stages=, cache=)
    config: type
    efforts: Mapping[str, Mapping[str, Any]]  # what each effort changes in the configuration
    summary: str
    reference: str
    uses_labels: bool = True


METHODS: dict[str, Method] = {
    "newfound": Method(
        newfound.fit,
        newfound.NewfoundConfig,
        newfound.EFFORTS,
        "contrast with neighbours, guided by labels; prototypes by k-means with pinned labels",
        "this project, docs/method.md",
    ),
    "dpn": Method(
        dpn.fit,
        dpn.DPNConfig,
        dpn.EFFORTS,
        "decoupled prototypes: labels guide the known categories, structure the novel ones",
        "An et al., Generalized Category Discovery with Decoupled Prototypical Network, AAAI 2023",
    ),
}


def find_method(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise InputError(f"the method {name!r} is unknown; choose one of {', '.join(METHODS)}")
    return METHODS[name]


def resolve_config(name: str, effort: str, changes: Mapping[str, Any] | None) -> Any:
    """A method's configuration: its defaults, then the effort's preset, then the user's changes."""
    method = find_method(name)
    config = override(method.config(), dict(method.efforts.get(effort, {})), f"method {name}")
    return override(config, dict(changes or {}), f"method {name}")
