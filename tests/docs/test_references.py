"""Modules, functions, tests and methods that the documentation names exist under that name."""

import ast
import re

import pytest
from support.documents import PAGES, ROOT, code_spans, read

from newfound.methods import METHODS

NAMED = [page for page in PAGES if page.startswith(("docs/", "README", "CONTRIBUTING"))]


def defined(path: str) -> set[str]:
    """Return the names of a module: functions, classes with their members, and assignments."""
    names = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{n.name}" for n in node.body if isinstance(n, ast.FunctionDef)}
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def exists(dotted: str) -> bool:
    """Return True if a dotted name such as newfound.config.RunConfig exists."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        folder = ROOT / "src" / "/".join(parts[:cut])
        rest = ".".join(parts[cut:])
        for path in (folder.with_suffix(".py"), folder / "__init__.py"):
            if path.is_file():
                if not rest:
                    return True
                if rest in defined(path.relative_to(ROOT).as_posix()):
                    return True
                return cut == 1 and rest in (
                    "CategoryDiscoverer",
                    "Predictor",
                )  # imported when asked for
    return False


@pytest.mark.parametrize("page", NAMED)
def test_named_modules_and_functions_exist(page: str) -> None:
    text = read(page)
    spans = [s for s in code_spans(text) if re.fullmatch(r"newfound(\.\w+)+", s)]
    spans += re.findall(r"^::: (\S+)", text, re.MULTILINE)
    assert [span for span in spans if not exists(span)] == []


@pytest.mark.parametrize("page", NAMED)
def test_named_tests_exist(page: str) -> None:
    missing = []
    for span in code_spans(read(page)):
        if not re.fullmatch(r"tests/[\w/]+\.py(::\w+)?", span):
            continue
        path, _, name = span.partition("::")
        if not (ROOT / path).is_file() or (name and name not in defined(path)):
            missing.append(span)
    assert missing == []


def test_every_method_is_in_the_table_of_comparison_methods() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| `(newfound\.methods[^`]*)`", read("docs/paper.md"), re.M)
    assert {name for name, _ in rows} == set(METHODS) - {"newfound", "dpn"}
    for name, module in rows:
        assert METHODS[name].fit.__module__ == module


def test_every_equation_of_the_paper_has_a_row() -> None:
    cells = re.findall(r"^\| ([\d, ]+) \|", read("docs/paper.md"), re.MULTILINE)
    numbers = [int(number) for cell in cells for number in cell.split(",")]
    assert numbers == list(range(1, 12))
