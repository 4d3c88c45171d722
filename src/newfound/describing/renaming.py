"""Give a fitted discoverer's novel categories names from an endpoint, if the user asks for it."""

import argparse
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from newfound.describing.llm_names import check_endpoint, names_from_endpoint
from newfound.errors import InputError
from newfound.progress import Stages

if TYPE_CHECKING:
    from newfound.discovery import Discovery

KEYS = ("NEWFOUND_API_KEY", "OPENAI_API_KEY")  # environment variables, the first that is set


@dataclass(frozen=True)
class Endpoint:
    """Where names come from."""

    url: str
    model: str
    key: str | None = field(repr=False)


def chosen_endpoint(options: argparse.Namespace) -> Endpoint | None:
    """The endpoint of --name-with and --name-model, checked, or None if names are not wanted."""
    url, model = getattr(options, "name_with", None), getattr(options, "name_model", None)
    if url is None and model is None:
        return None
    if not url or not model:
        missing = "--name-model MODEL" if url else "--name-with URL"
        raise InputError(f"names from an endpoint need both its address and a model: add {missing}")
    check_endpoint(url)
    key = next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
    return Endpoint(url, model, key)


def rename_novel(discoverer: "Discovery", endpoint: Endpoint) -> None:
    """Ask for names and put them, and the notes on what did not work, into the discoverer."""
    stages = Stages(discoverer.verbose)
    with stages.stage("naming"):
        named, notes = names_from_endpoint(
            discoverer.category_list_, endpoint.url, endpoint.model, endpoint.key
        )
    discoverer.category_list_ = named
    discoverer._set_names()
    discoverer.labels_ = discoverer.classes_[discoverer.assigned_]
    discoverer.notes_ = discoverer.notes_ + notes
    discoverer.seconds_ = {**discoverer.seconds_, **stages.seconds}
