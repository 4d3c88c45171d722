"""The Python blocks of the README and of the documentation run on the demo's data."""

import warnings
from pathlib import Path

import pytest
from support.documents import PAGES, blocks, read

from newfound.data import demo

TEXTS = 160  # of the demo's messages: enough for an example to work, few enough to be quick
WITH_PYTHON = [
    page for page in PAGES if any(block.language == "python" for block in blocks(read(page)))
]


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the table that examples read."""
    table = demo.load().sample(TEXTS, random_state=0)
    table[["text", "label"]].to_csv(tmp_path / "messages.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    return tmp_path


@pytest.mark.usefixtures("one_thread", "quick_newfound")
@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_blocks_run(page: str, working_folder: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(read(page)):
        if block.language == "python":
            # Blank lines in front, so that a traceback names the line of the page.
            source = "\n" * (block.line - 1) + block.text
            with warnings.catch_warnings():
                warnings.simplefilter("error", DeprecationWarning)
                exec(compile(source, page, "exec"), names)


@pytest.mark.parametrize("page", PAGES)
def test_slow_blocks_are_valid_python(page: str) -> None:
    for block in blocks(read(page)):
        if block.language == "py":
            compile(block.text, page, "exec")


def test_readme_and_library_page_have_examples() -> None:
    assert {"README.md", "docs/library.md"} <= set(WITH_PYTHON)
