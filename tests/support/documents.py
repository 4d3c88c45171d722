"""The Markdown pages of the repository, and what stands in them: blocks, links, headings."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = tuple(
    path.relative_to(ROOT).as_posix()
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "benchmarks").glob("*.md")),
        *sorted((ROOT / "benchmarks" / "notes").glob("*.md")),
    )
)
_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language ("" if none) and its text."""

    language: str
    text: str
    line: int


def read(page: str) -> str:
    """Return the text of a page, named by its path in the repository."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    return [
        Block(match[2], match[3], text[: match.start()].count("\n") + 2)
        for match in _FENCE.finditer(text)
    ]


def prose(text: str) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", text)


def links(text: str) -> list[str]:
    """Return the targets of a page's links and images; code is left out."""
    return _LINK.findall(_CODE.sub("", prose(text)))


def code_spans(text: str) -> list[str]:
    """Return what stands in backticks in the text of a page."""
    return _CODE.findall(prose(text))


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and mkdocs make them."""
    titles = re.findall(r"^#{1,6} +(.+?) *$", prose(text), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    return {
        re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in plain
    }
