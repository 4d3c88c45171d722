"""The naming endpoint that the flags --name-with and --name-model choose."""

import argparse
import os

from newfound.describing.llm_names import Endpoint, check_endpoint
from newfound.errors import InputError

KEYS = ("NEWFOUND_API_KEY", "OPENAI_API_KEY")  # environment variables, the first that is set


def chosen_endpoint(options: argparse.Namespace) -> Endpoint | None:
    """Return the endpoint of --name-with and --name-model, None where neither is given."""
    url, model = getattr(options, "name_with", None), getattr(options, "name_model", None)
    if url is None and model is None:
        return None
    if not url or not model:
        missing = "--name-model MODEL" if url else "--name-with URL"
        raise InputError(f"names from an endpoint need both its address and a model: add {missing}")
    check_endpoint(url)
    key = next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
    return Endpoint(url, model, key)
