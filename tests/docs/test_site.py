"""The documentation site builds without a warning, and needs no other host."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest
from support.documents import ROOT

pytest.importorskip("mkdocs", reason="the site needs newfound[docs]")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a link or an anchor that leads nowhere fails the build."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    """The hooks of the site, which are no part of a package."""
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "scripts/site_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    outside = re.compile(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"(?:https?:)?//[^\"]+")
    for page in site.rglob("*.html"):
        assert not outside.findall(page.read_text(encoding="utf-8")), page.name


def test_rendered_tables_are_on_the_site(site: Path) -> None:
    assert "StackOverflow" in (site / "benchmarks" / "table2.html").read_text(encoding="utf-8")
    for page in ("method.html", "results.html", "number-of-categories.html"):
        text = (site / page).read_text(encoding="utf-8")
        assert "BANKING" in text
        assert "--8<--" not in text
        assert "<!-- ablation -->" not in text


def test_ablation_table_has_a_row_per_part(hooks: ModuleType) -> None:
    parts = (
        "# Parts\n\n"
        "| effort | part | measured in | data set | All | Known | Novel |\n"
        "| :-- | --: | --: | --: | --: | --: | --: |\n"
        "| fast | a | current | BANKING | 1.0 | 2.0 | 3.0 |\n"
        "| fast | a | current | CLINC | 4.0 | 5.0 | 6.0 |\n"
        "| fast | b | current | CLINC | 7.0 | 8.0 | 9.0 |\n"
        "| fast | d | an earlier version | CLINC | 0.0 | 0.0 | 0.0 |\n"
        "| best | c | current | CLINC | 0.0 | 0.0 | 0.0 |\n"
    )
    assert hooks.ablation_table(parts).splitlines() == [
        "| without | BANKING, All | BANKING, Novel | CLINC, All | CLINC, Novel |",
        "| :-- | --: | --: | --: | --: |",
        "| a | 1.0 | 3.0 | 4.0 | 6.0 |",
        "| b |  |  | 7.0 | 9.0 |",
    ]


@pytest.mark.parametrize(
    ("source", "markdown", "expected"),
    [
        ("docs/a.md", "[x](../benchmarks/b.md#c)", "[x](benchmarks/b.md#c)"),
        ("benchmarks/b.md", "[x](../docs/a.md)", "[x](../a.md)"),
        ("benchmarks/b.md", "[x](../README.md)", "[x](../index.md)"),
        ("docs/a.md", "[mypy](../pyproject.toml)", "mypy (`pyproject.toml`)"),
        ("docs/a.md", "[x](#here) [y](https://a.b/c)", "[x](#here) [y](https://a.b/c)"),
        ("docs/a.md", "```\n[x](../benchmarks/b.md)\n```", "```\n[x](../benchmarks/b.md)\n```"),
    ],
)
def test_links_are_rewritten_for_the_site(
    hooks: ModuleType, source: str, markdown: str, expected: str
) -> None:
    on_site: Mapping[str, str] = {
        "docs/a.md": "a.md",
        "docs/index.md": "index.md",
        "benchmarks/b.md": "benchmarks/b.md",
    }
    assert hooks.rewrite_links(markdown, source, on_site) == expected
