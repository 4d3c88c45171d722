"""The review in a real browser: with keys, with the pointer, with several people."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.browser import Browser
from support.fake_run import EVIL, write_fake_run
from support.pages import frame, press, write_in

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from support.review_server import Served, served

from newfound.decisions import Decision, append, read_decided, read_log

LATENCY = 0.2  # seconds from a key to the page that shows the decision

Open = Callable[..., Browser]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_fake_run(tmp_path / "run", 400, 6, 6, 0)


@pytest.fixture
def review(folder: Path) -> Iterator[Served]:
    with served(folder) as one:
        yield one


def opened(browser: Browser, review: Served, width: int = 1280, phone: bool = False) -> Browser:
    browser.size(width, 844 if phone else 900, phone)
    browser.prefer("light")
    browser.call("Page.navigate", url="about:blank")
    browser.events.clear()
    browser.call("Page.navigate", url=review.address)
    browser.wait("document.documentElement?.dataset.review === 'ready'")
    browser.run("document.documentElement.style.scrollBehavior = 'auto'")
    return browser


@pytest.fixture
def page(browser: Browser, review: Served) -> Browser:
    return opened(browser, review)


def select(page: Browser, name: str) -> None:
    """Select a category by its name in the table."""
    page.run(
        "[...document.querySelectorAll('#table-body button.name')]"
        f".find(one => one.textContent === {json.dumps(name)}).click()"
    )


def saved(page: Browser, folder: Path, count: int) -> list[dict[str, Any]]:
    """Wait until so many lines are saved and shown; return them."""
    page.wait(
        "document.documentElement.dataset.saving === undefined"
        f" && document.querySelectorAll('.log li').length === {count}"
    )
    return [json.loads(line) for line in (folder / "decisions.jsonl").read_text().splitlines()]


def status(page: Browser) -> str:
    return page.run("document.getElementById('review-status').textContent")


def novel(folder: Path) -> list[Any]:
    return [c for c in read_decided(folder)[0].categories if c.status == "proposed"]


def test_categories_are_decided_with_the_keyboard_alone(page: Browser, folder: Path) -> None:
    first, second, third, *_ = novel(folder)
    select(page, first.name)
    page.key("a")
    (line,) = saved(page, folder, 1)
    assert (line["decision"], line["category"]) == ("accept", first.id)
    assert "texts" not in line  # the typical and border texts count as read
    assert "1 of 6 novel categories decided" in page.run(
        "document.getElementById('review-progress').textContent"
    )
    assert page.run("document.querySelectorAll('#table .decided').length") == 1

    select(page, second.name)
    page.key("x")
    assert saved(page, folder, 2)[1] | {"time": "", "author": ""} == {
        "decision": "reject", "category": second.id, "time": "", "author": "",
    }  # fmt: skip
    page.key("u")
    assert saved(page, folder, 3)[2]["line"] == 2
    assert "Undone: rejected" in status(page)

    select(page, third.name)
    page.key("r")
    page.run("document.activeElement.select()")
    page.type("A better name")
    page.key("Enter")
    assert saved(page, folder, 4)[3]["name"] == "A better name"
    assert page.run("document.querySelector('#panel h3.name').textContent") == "A better name"
    page.key("m")
    page.run("document.activeElement.selectedIndex = 1")
    into = page.run("document.activeElement.value")
    page.key("Tab")
    page.key("Enter")
    line = saved(page, folder, 5)[4]
    assert (line["categories"], line["into"]) == ([third.id], into)
    assert third.id not in {c.id for c in read_decided(folder)[0].categories}
    assert page.complaints() == []


def test_keys_go_through_the_table_and_are_not_taken_from_inputs(
    page: Browser, folder: Path
) -> None:
    page.key("j")
    first = page.run("document.querySelector('#panel h3.name').textContent")
    page.key("j")
    second = page.run("document.querySelector('#panel h3.name').textContent")
    assert first != second
    page.key("k")
    assert page.run("document.querySelector('#panel h3.name').textContent") == first
    page.key("/")
    for letter in "axus":
        page.key(letter)
    assert page.run("document.getElementById('map-search').value") == "axus"
    assert not (folder / "decisions.jsonl").exists()
    page.run("document.getElementById('map-search').blur()")
    page.key("?")
    assert "accept the category" in page.run("document.getElementById('review-keys').innerText")


def test_unticked_texts_do_not_belong(page: Browser, folder: Path) -> None:
    first = novel(folder)[0]
    select(page, first.name)
    for at in (1, 3):
        press(page, f"#panel .all-texts li:nth-child({at}) .tick")
    gone = page.run(
        "[1, 3].map(at => document.querySelector("
        "`#panel .all-texts li:nth-child(${at}) .text`).textContent)"
    )
    page.run("document.activeElement.blur()")
    page.key("a")
    page.wait("document.querySelectorAll('.log li').length === 2")
    nowhere, accept = saved(page, folder, 2)
    result = read_decided(folder)[0]
    of = dict(zip(result.corpus.ids, result.corpus.texts, strict=True))
    assert nowhere["decision"] == "nowhere"
    assert [of[id_] for id_ in nowhere["texts"]] == gone
    assert not set(nowhere["texts"]) & set(accept["texts"])
    assert len(accept["texts"]) == min(first.size, 40) - 2  # the list was read
    assert page.run("document.querySelectorAll('#panel .all-texts .flag').length") == 2


def test_search_and_bulk_choice_move_texts(page: Browser, folder: Path) -> None:
    result = read_decided(folder)[0]
    wanted = [i for i, text in enumerate(result.corpus.texts) if "invoice" in text.lower()]
    write_in(page, "#map-search", "invoice")
    page.wait("document.querySelector('#panel .bulk') !== null")
    press(page, "#panel .all-texts li:nth-child(1) .tick")
    assert page.run("document.documentElement.dataset.meant") == str(len(wanted) - 1)
    page.run(
        "(() => { const one = document.querySelector('#panel .bulk select');"
        "one.value = 'c8'; one.dispatchEvent(new Event('change')); })()"
    )
    (line,) = saved(page, folder, 1)
    assert (line["decision"], line["into"]) == ("move", "c8")
    assert len(line["texts"]) == len(wanted) - 1
    moved = read_decided(folder)[0]
    ids = set(line["texts"])
    at = moved.position["c8"]
    assert all(moved.assigned[i] == at for i, id_ in enumerate(moved.corpus.ids) if id_ in ids)


def test_lasso_chooses_the_texts_inside(page: Browser, folder: Path) -> None:
    page.run("document.getElementById('map').scrollIntoView()")
    page.key("l")
    frame(page)
    x, y, width, height = page.run(
        "(() => { const box = document.getElementById('map-canvas').getBoundingClientRect();"
        "return [box.x, box.y, box.width, box.height]; })()"
    )
    corners = [(0.05, 0.1), (0.95, 0.1), (0.95, 0.55), (0.05, 0.55)]
    points = [(x + a * width, y + b * height) for a, b in corners]
    page.mouse("mousePressed", *points[0])
    for px, py in points[1:]:
        page.call(
            "Input.dispatchMouseEvent", type="mouseMoved", x=px, y=py, button="left", buttons=1
        )
    page.mouse("mouseReleased", *points[3])
    title = page.run("document.querySelector('#panel h3').textContent")
    count = int(title.split()[0].replace(",", ""))
    assert title.endswith("in the lasso")
    # As many as have a position in the upper half of the map, by the positions themselves.
    positions = read_decided(folder)[0].map_positions
    span = (positions.max(axis=0) - positions.min(axis=0)).max()
    scale = min(width, height) - 52
    top = positions[:, 1].max()
    screen = (height - (positions[:, 1].max() - positions[:, 1].min()) / span * scale) / 2
    inside = screen + (top - positions[:, 1]) / span * scale
    expected = int(((inside > 0.1 * height) & (inside < 0.55 * height)).sum())
    assert abs(count - expected) <= 0.05 * len(positions)
    press(page, "#panel .bulk button")
    (line,) = saved(page, folder, 1)
    assert line["decision"] == "nowhere"
    assert len(line["texts"]) == count


def test_proposed_split_is_previewed_and_saved(page: Browser, folder: Path) -> None:
    first = max(novel(folder), key=lambda c: c.size)
    select(page, first.name)
    page.key("s")
    page.wait("document.querySelector('.split .main') !== null")
    heads = page.run("[...document.querySelectorAll('.parts h4')].map(one => one.textContent)")
    sizes = [int(head.split()[2]) for head in heads]
    assert sum(sizes) == first.size
    page.type("Left half")
    press(page, ".split .main")
    (line,) = saved(page, folder, 1)
    assert [len(part["texts"]) for part in line["parts"]] == sizes
    assert line["parts"][0]["name"] == "Left half"
    names = page.run(
        "[...document.querySelectorAll('#table-body button.name')].map(one => one.textContent)"
    )
    assert "Left half" in names
    assert first.name not in names
    # The map and the table show all texts again, not those of the proposed part.
    amounts = page.run(
        "[...document.querySelectorAll('#table-body .amount')].map(one => one.firstChild.data)"
    )
    assert all(amount.replace(",", "").strip().isdigit() for amount in amounts), amounts


def test_two_people_do_not_overwrite_each_other(page: Browser, folder: Path) -> None:
    first, second, *_ = novel(folder)
    page.run("window.setInterval = () => 0")
    append(folder, [Decision("rename", category=first.id, name="By Ben", author="Ben")])
    select(page, second.name)
    page.key("x")
    page.wait("document.getElementById('review-status').classList.contains('problem')")
    assert "was not saved" in status(page)
    assert len(read_log(folder).entries) == 1
    assert "By Ben" in page.run("document.getElementById('table-body').textContent")
    page.key("x")
    assert [line["decision"] for line in saved(page, folder, 2)] == ["rename", "reject"]


def test_decisions_made_elsewhere_appear(page: Browser, folder: Path) -> None:
    append(folder, [Decision("rename", category=novel(folder)[0].id, name="By Ben", author="Ben")])
    page.wait("document.getElementById('table-body').textContent.includes('By Ben')")
    assert "made elsewhere" in status(page)


def test_decision_that_cannot_be_saved_is_said(
    browser: Browser, folder: Path, tmp_path: Path
) -> None:
    with served(folder) as review:
        page = opened(browser, review)
        page.key("j")
    page.key("a")
    page.wait("document.getElementById('review-status').classList.contains('problem')")
    assert "does not answer" in status(page)
    assert not (folder / "decisions.jsonl").exists()


def test_texts_and_names_are_not_executed(browser: Browser, tmp_path: Path) -> None:
    folder = write_fake_run(tmp_path / "evil", 300, 16, 6, 1, evil=True)
    with served(folder, author=EVIL[0]) as review:
        page = opened(browser, review)
        for at in (1, 2, 3):
            press(page, f"#table-body tr:nth-child({at}) button.name")
        category = novel(folder)[0]
        review.decide({"decision": "rename", "category": category.id, "name": EVIL[2]})
        review.decide({"decision": "note", "text": EVIL[1]})
        page.wait("document.querySelectorAll('.log li').length === 2")
        frame(page)
        assert page.run("typeof window.hacked") == "undefined"
        assert page.run("document.querySelectorAll('img, iframe, link').length") == 0
        assert page.run("document.querySelectorAll('script').length") == 2
        assert EVIL[2] in page.run("document.getElementById('table-body').textContent")
        blocked = page.run(
            "new Promise(done => { document.addEventListener('securitypolicyviolation',"
            "  event => done(event.effectiveDirective));"
            "fetch('http://127.0.0.1:9/').catch(() => 0); })"
        )
        assert blocked == "connect-src"
        hosts = {url.split("/")[2] for url in page.requests() if url.startswith("http")}
        assert hosts <= {f"127.0.0.1:{review.port}", "127.0.0.1:9"}


@pytest.mark.parametrize(("width", "phone"), [(1280, False), (360, True)])
def test_no_element_is_wider_than_the_window(
    browser: Browser, review: Served, folder: Path, width: int, phone: bool
) -> None:
    page = opened(browser, review, width, phone)
    select(page, novel(folder)[0].name)
    for key in ("?", "m"):
        page.key(key)
    frame(page)
    assert page.run("document.documentElement.scrollWidth") <= width
    unnamed = page.run(
        "[...document.querySelectorAll('button, input, select')].filter("
        "one => !(one.textContent.trim() || one.getAttribute('aria-label')"
        "|| one.labels?.[0]?.textContent.trim())).map(one => one.outerHTML)"
    )
    assert unnamed == []


@pytest.mark.slow
def test_actions_are_shown_in_time_at_twenty_thousand_texts(
    browser: Browser, tmp_path: Path
) -> None:
    folder = write_fake_run(tmp_path / "run", 20_000, 60, 25, 1)
    with served(folder) as review:
        page = opened(browser, review)
        taken: dict[str, list[float]] = {}
        for at, category in enumerate(novel(folder)[:12]):
            select(page, category.name)
            frame(page)
            key = "axu"[at % 3]
            page.run("window.begun = performance.now()")
            page.key(key)
            page.wait(f"document.querySelectorAll('.log li').length === {at + 1}")
            frame(page)
            taken.setdefault(key, []).append(page.run("performance.now() - window.begun") / 1000)
        # The best of several, because other load on the machine does not matter.
        assert {key: min(each) for key, each in taken.items() if min(each) > LATENCY} == {}
        assert np.isfinite(sum(sum(each) for each in taken.values()))


def test_queue_asks_and_takes_answers_with_keys(page: Browser, folder: Path) -> None:
    page.key("n")
    page.wait("document.querySelector('.question') !== null")
    asked = page.run("document.querySelector('.question b').textContent")
    chosen = page.run("document.querySelector('#panel h3.name').textContent")
    assert f"“{chosen}”" in asked
    page.key("n")
    assert page.run("document.querySelector('.question b').textContent") != asked
    for answered in range(1, 5):
        page.run("document.activeElement.blur?.()")
        page.key("y")
        saved(page, folder, answered)
        page.key("n")
    decisions = [entry.action for entry in read_log(folder).entries if entry is not None]
    assert set(decisions) <= {"accept", "merge"}
    assert len(decisions) == 4
    assert page.complaints() == []
