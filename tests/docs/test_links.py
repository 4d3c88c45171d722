"""Links between the README, the documentation and the benchmark's pages lead somewhere."""

import posixpath
import re

import pytest
from support.documents import PAGES, ROOT, anchors, links, read

WORDS = 950  # of the README, as `wc -w` counts them


@pytest.mark.parametrize("page", PAGES)
def test_links_and_anchors_exist(page: str) -> None:
    broken = []
    for link in links(read(page)):
        target, _, anchor = link.partition("#")
        if ":" in target:
            continue
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        path = path if target else page
        # The site shows the benchmark's pages beside those of docs/.
        if page.startswith("docs/") and not (ROOT / path).exists():
            path = path.removeprefix("docs/")
        if not (ROOT / path).exists() or (anchor and anchor not in anchors(read(path))):
            broken.append(link)
    assert not broken


def test_readme_is_short_and_keeps_its_rendered_blocks() -> None:
    text = read("README.md")
    for name in ("demo", "summary"):
        assert f"<!-- {name} -->" in text
        assert f"<!-- /{name} -->" in text
    assert len(text.split()) < WORDS


def test_documents_name_no_place_outside_the_repository() -> None:
    for page in PAGES:
        assert not re.search(r"\.\./shared|(?<![\w.])/work/|(?<![\w.])/tmp/", read(page)), page
