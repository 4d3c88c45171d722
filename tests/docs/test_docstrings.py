"""What the API reference shows has a docstring, and the examples in it run."""

import doctest
import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from support.documents import read

PUBLIC = re.findall(r"^::: (\S+)", read("docs/api.md"), re.MULTILINE)


def load(dotted: str) -> Any:
    """Import the object with this dotted name."""
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", PUBLIC)
def test_public_objects_have_docstrings_whose_examples_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = load(name)
    assert (found.__doc__ or "").strip()
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in doctest.DocTestFinder().find(found, name.rpartition(".")[2], globs={}):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_main_entry_points_have_examples() -> None:
    for name in ("newfound.estimator.CategoryDiscoverer", "newfound.pipeline.discover"):
        assert doctest.DocTestParser().get_examples(load(name).__doc__ or ""), name
