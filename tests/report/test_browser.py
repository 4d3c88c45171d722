"""The report in a real browser."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.browser import Browser
from support.fake_run import write_fake_run
from support.languages import MESSAGES
from support.pages import data_of, frame, opened, press, write_in

import newfound.report.sample
from newfound.checking.check import Check, MethodCheck
from newfound.checking.forecast import Whole
from newfound.checking.scores import DrawScores
from newfound.report import write_report
from newfound.storage.run_folder import read_run

SECONDS = 2.0  # until the page is usable

Open = Callable[..., Browser]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that writes a report once for each kind of run."""
    made: dict[tuple[Any, ...], Path] = {}

    def write(texts: int, known: int, novel: int, evil: bool = False) -> Path:
        key = (texts, known, novel, evil)
        if key not in made:
            folder = tmp_path_factory.mktemp("run")
            run = write_fake_run(folder, texts, known, novel, 1, evil=evil)
            made[key] = write_report(read_run(run), run / "report.html")
        return made[key]

    return write


@pytest.fixture
def page(browser: Browser, report: Callable[..., Path]) -> Browser:
    """Return the browser with the report of 1,000 texts, in light colours on a desk."""
    return opened(browser, report(1_000, 20, 10))


def names(page: Browser) -> list[str]:
    """Return the names in the table that are shown, from the top."""
    return page.run(
        "[...document.querySelectorAll('#table-body tr:not([hidden]) button.name')]"
        ".map(one => one.textContent)"
    )


def marks(page: Browser, least: int = 200) -> int:
    """Return how many pixels of the map are painted, at least so strongly."""
    frame(page)
    return page.run(
        "(() => { const one = document.getElementById('map-canvas');"
        "const all = one.getContext('2d').getImageData(0, 0, one.width, one.height).data;"
        f"let n = 0; for (let i = 3; i < all.length; i += 4) n += all[i] > {least}; return n; }})()"
    )


def bare_map(page: Browser) -> None:
    """Bring the map into view without the names on it."""
    press(page, "#map-names")
    page.run("document.getElementById('map-frame').scrollIntoView({block: 'center'})")
    frame(page)


def a_mark(page: Browser) -> tuple[float, float]:
    """Return the place in the window of some text's mark on the map."""
    return page.run(
        "(() => { const one = document.getElementById('map-canvas');"
        "const box = one.getBoundingClientRect(), pen = one.getContext('2d');"
        "for (let y = 120; y < one.height; y++) for (let x = 20; x < one.width - 20; x++)"
        "  if (pen.getImageData(x, y, 1, 1).data[3] > 200) return [box.x + x, box.y + y + 2]; })()"
    )


class TestLoading:
    def test_page_has_no_console_errors_and_no_requests(self, page: Browser) -> None:
        frame(page)
        assert page.complaints() == []
        assert [url.split("/")[-1] for url in page.requests()] == ["report.html"]

    @pytest.mark.parametrize("texts", [1_000, 20_000])
    def test_page_loads_in_time(
        self, browser: Browser, report: Callable[..., Path], texts: int
    ) -> None:
        # The best of three, because other load on the machine does not matter.
        taken = []
        for _ in range(3):
            opened(browser, report(texts, 60, 25))
            frame(browser)
            taken.append(browser.run("performance.now()") / 1000)
        assert min(taken) < SECONDS
        assert browser.complaints() == []

    def test_page_size_is_limited(self, report: Callable[..., Path]) -> None:
        assert report(20_000, 60, 25).stat().st_size < 8_000_000

    @pytest.mark.parametrize(("width", "phone"), [(1280, False), (800, False), (360, True)])
    @pytest.mark.parametrize("evil", [False, True])
    def test_no_element_is_wider_than_the_window(
        self, browser: Browser, report: Callable[..., Path], width: int, phone: bool, evil: bool
    ) -> None:
        page = opened(browser, report(300, 16, 6, evil), width, phone)
        press(page, "#each-all")
        press(page, "#table-body button.name")
        frame(page)
        assert page.run("document.documentElement.scrollWidth") <= width

    def test_all_sections_are_shown(self, page: Browser) -> None:
        assert page.run("document.querySelectorAll('#estimate svg').length") == 1
        assert page.run("document.querySelectorAll('#training svg').length") == 6
        assert page.run("document.querySelectorAll('.each').length") == 30
        assert page.run("document.getElementById('heat').width") > 100
        settings = page.run("document.getElementById('settings').textContent")
        assert "newfound discover texts.csv --seed 0" in settings
        assert '"temperature": 0.07' in settings

    def test_sampled_map_states_the_sample_size(
        self, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(newfound.report.sample, "TOO_MANY", 500)
        monkeypatch.setattr(newfound.report.sample, "SAMPLE", 300)
        run = read_run(write_fake_run(tmp_path, 600, 5, 3, 0))
        page = opened(browser, write_report(run, tmp_path / "report.html"))
        hint = page.run("document.getElementById('map-hint').textContent")
        assert "300 of the 600 texts" in hint

    def test_what_to_expect_is_shown_only_where_it_was_measured(
        self, browser: Browser, tmp_path: Path
    ) -> None:
        run = read_run(write_fake_run(tmp_path, 60, 4, 3, 0))
        draw = DrawScores(80.0, 85.0, 70.0, 84.0, 50.0, 50.0, 4.0, 14, 2, 9, 20)
        whole = Whole(known=90.0, novel=80.0, novel_share=0.25, n_categories=12)
        check = Check((MethodCheck("dpn", (draw,), 3.0, whole),), 60, 20, 4, 0.25, {})
        page = opened(browser, write_report(run, tmp_path / "report.html", check=check))
        assert page.run("document.querySelector('#check tbody').textContent").startswith(
            "dpn8880.0"
        )
        assert page.run("document.querySelectorAll('nav a[href=\"#check\"]').length") == 1
        page = opened(browser, write_report(run, tmp_path / "report.html"))
        assert page.run("document.querySelectorAll('#check, nav a[href=\"#check\"]').length") == 0
        assert page.complaints() == []

    def test_a_run_with_nothing_recorded(self, browser: Browser, tmp_path: Path) -> None:
        whole = read_run(write_fake_run(tmp_path, 40, 0, 3, 0))
        nothing: dict[str, Any] = {"config": {}, "seconds": {}, "versions": {}, "notes": ()}
        bare = replace(whole, **nothing, history=(), estimate=None, matching=None, command=None)
        page = opened(browser, write_report(bare, tmp_path / "report.html"))
        assert page.complaints() == []
        assert "could not be drawn" not in page.run("document.getElementById('main').textContent")


class TestSafety:
    @pytest.fixture
    def evil(self, browser: Browser, report: Callable[..., Path]) -> Browser:
        page = opened(browser, report(300, 16, 6, True))
        press(page, "#each-all")
        press(page, "#table-body tr:nth-child(3) button.name")
        for _ in range(3):
            page.run("document.querySelectorAll('.more').forEach(one => one.click())")
        return page

    def test_texts_are_not_executed(self, evil: Browser) -> None:
        frame(evil)
        assert evil.run("typeof window.hacked") == "undefined"
        assert evil.run("document.querySelectorAll('img, iframe, link').length") == 0
        assert evil.run("document.querySelectorAll('script').length") == 2
        assert evil.run("document.querySelectorAll('style').length") == 1
        assert evil.complaints() == []
        assert len(evil.requests()) == 1

    def test_texts_are_shown_verbatim(self, evil: Browser) -> None:
        shown = evil.run("document.getElementById('main').innerText")
        assert "<script>window.hacked = 1</script>" in shown
        assert "right to left ⟦U+202E⟧override" in shown
        assert "(100,000 characters)" in shown

    def test_text_direction_does_not_affect_other_elements(self, evil: Browser) -> None:
        styles = evil.run(
            "[...new Set([...document.querySelectorAll('.quotes .text, button.name bdi')]"
            ".map(one => getComputedStyle(one).unicodeBidi))]"
        )
        assert styles == ["isolate"]

    def test_content_security_policy_blocks_injected_scripts(self, page: Browser) -> None:
        stopped = page.run(
            "new Promise(done => { const seen = []; let left = 4;"
            "document.addEventListener('securitypolicyviolation', event => {"
            "  seen.push(event.effectiveDirective); if (--left === 0) done(seen.sort()); });"
            "const add = (tag, set) => document.body.append("
            "  Object.assign(document.createElement(tag), set));"
            "add('script', {textContent: 'window.hacked = 8'});"
            "add('style', {textContent: 'body { display: none }'});"
            "add('img', {src: 'http://127.0.0.1:9/x.png'});"
            "fetch('http://127.0.0.1:9/').catch(() => 0); })"
        )
        assert [re.sub("-elem$", "", one) for one in stopped] == [
            "connect-src", "img-src", "script-src", "style-src",
        ]  # fmt: skip
        assert page.run("typeof window.hacked") == "undefined"
        assert page.run("getComputedStyle(document.body).display") == "block"


class TestTable:
    def test_headings_sort_in_both_directions(self, page: Browser) -> None:
        sizes = {one["name"]: one["size"] for one in data_of(page)["categories"]}
        assert [sizes[name] for name in names(page)] == sorted(sizes.values(), reverse=True)
        press(page, "#table-head [data-key=size] button")
        assert [sizes[name] for name in names(page)] == sorted(sizes.values())
        press(page, "#table-head [data-key=name] button")
        assert names(page) == sorted(sizes)
        sorts = page.run(
            "[...document.querySelectorAll('#table-head [aria-sort]')]"
            ".map(one => [one.dataset.key, one.getAttribute('aria-sort')])"
        )
        assert sorts == [["name", "ascending"]]

    def test_table_is_filtered_by_words_and_kind(self, page: Browser) -> None:
        categories = data_of(page)["categories"]
        press(page, "#table-kinds [data-kind=novel]")
        novel = {one["name"] for one in categories if one["kind"] == "novel"}
        assert set(names(page)) == novel
        write_in(page, "#table-filter", "REFUND")
        assert set(names(page)) == {name for name in novel if "refund" in name}
        assert "of 30 categories" in page.run("document.getElementById('table-count').textContent")
        press(page, "#table-kinds [data-kind=all]")
        assert set(names(page)) == {one["name"] for one in categories if "refund" in one["name"]}

    def test_table_is_filtered_by_findings(self, page: Browser) -> None:
        data = data_of(page)
        press(page, "#table-flagged")
        flagged = {item[0] for finding in data["findings"] for item in finding["items"]}
        assert flagged
        assert set(names(page)) == {data["categories"][at]["name"] for at in flagged}

    def test_narrow_screen_sorts_with_a_list(
        self, browser: Browser, report: Callable[..., Path]
    ) -> None:
        page = opened(browser, report(1_000, 20, 10), 390, phone=True)
        assert (
            page.run("getComputedStyle(document.querySelector('#table thead')).display") == "none"
        )
        page.run(
            "(() => { const one = document.getElementById('table-sort'); one.value = 'name';"
            "one.dispatchEvent(new Event('change')); })()"
        )
        assert names(page) == sorted(names(page))


class TestMap:
    def test_hover_shows_the_text(self, page: Browser) -> None:
        bare_map(page)
        page.mouse("mouseMoved", *a_mark(page))
        page.wait("!document.getElementById('map-tip').hidden")
        data = data_of(page)
        text = page.run("document.querySelector('#map-tip .text').textContent")
        at = data["texts"]["text"].index(text)
        category = data["categories"][data["texts"]["category"][at]]
        assert category["name"] in page.run("document.getElementById('map-tip').textContent")
        page.mouse("mouseMoved", 2, 400)
        page.wait("document.getElementById('map-tip').hidden")

    def test_click_selects_a_category_everywhere(self, page: Browser) -> None:
        bare_map(page)
        before = marks(page)
        page.click(*a_mark(page))
        page.wait("document.querySelector('#panel h3.name') !== null")
        name = page.run("document.querySelector('#panel h3.name').textContent")
        assert name in page.run("document.getElementById('map-tip').textContent")
        assert (
            page.run("document.querySelector('tr[aria-current] button.name').textContent") == name
        )
        page.mouse("mouseMoved", 2, 400)
        assert 0 < marks(page) < before / 2  # the others have faded
        press(page, "#panel .panel-head button")
        assert page.run("document.querySelector('tr[aria-current]')") is None
        assert marks(page) == before

    def test_name_in_the_table_selects_and_opens_the_panel(self, page: Browser) -> None:
        press(page, "#table-body tr:nth-child(5) button.name")
        wanted = names(page)[4]
        assert page.run("document.querySelector('#panel h3.name').textContent") == wanted
        assert page.run("document.activeElement.id") == "panel"
        top, bottom = page.run(
            "(() => { const box = document.getElementById('panel').getBoundingClientRect();"
            "return [box.top, box.bottom - innerHeight]; })()"
        )
        assert top >= 0
        assert bottom < 200

    def test_kinds_can_be_hidden(self, page: Browser) -> None:
        bare_map(page)
        both = marks(page)
        press(page, "#map-known")
        novel = marks(page)
        press(page, "#map-novel")
        assert 0 < novel < both
        assert marks(page, 0) == 0

    def test_search_finds_texts(self, page: Browser) -> None:
        wanted = sum("invoice" in text.lower() for text in data_of(page)["texts"]["text"])
        write_in(page, "#map-search", "Invoice")
        page.wait(f"document.querySelector('#panel h3').textContent === '{wanted} texts found'")

    def test_zoom_and_reset(self, page: Browser) -> None:
        bare_map(page)
        whole = marks(page)
        for _ in range(4):
            press(page, "#map-in")
        assert marks(page) != whole
        press(page, "#map-reset")
        assert marks(page) == whole

    def test_map_works_with_the_keyboard_alone(self, page: Browser) -> None:
        page.run("document.getElementById('map-canvas').focus()")
        page.key("ArrowRight")
        first = page.run("document.getElementById('map-live').textContent")
        page.key("ArrowRight")
        second = page.run("document.getElementById('map-live').textContent")
        assert first
        assert second not in ("", first)
        page.key("Enter")
        name = page.run("document.querySelector('#panel h3.name').textContent")
        assert second.endswith(name)
        page.key("Escape")
        assert page.run("document.querySelector('#panel h3.name')") is None


class TestRest:
    def test_opening_a_category_shows_its_description(self, page: Browser) -> None:
        press(page, ".each summary")
        page.wait("document.querySelector('.each .about') !== null")
        text = page.run("document.querySelector('.each .about').textContent")
        assert "Typical texts" in text
        assert "Border texts" in text
        assert "nearest category, at distance" in text

    def test_heat_map_works_with_the_keyboard_and_is_legible(
        self, browser: Browser, report: Callable[..., Path]
    ) -> None:
        page = opened(browser, report(2_000, 112, 38))
        assert page.run("document.getElementById('heat').clientWidth") <= 1200
        press(page, "#heat-size button:nth-child(2)")
        assert page.run("document.getElementById('heat').clientWidth / 150") >= 14
        page.run("document.getElementById('heat').focus()")
        for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
            page.key(key)
        table = data_of(page)["matching"]
        said = page.run("document.getElementById('heat-readout').textContent")
        assert said == (
            f"Label “{table['rows'][1]}” and its match “{table['columns'][1]}”: "
            f"distance {table['distances'][1][1]:.2f}"
        )

    def test_dark_theme_follows_the_system_and_the_button(self, page: Browser) -> None:
        def page_colour() -> str:
            return page.run("getComputedStyle(document.body).backgroundColor")

        light = page_colour()
        page.prefer("dark")
        page.wait("document.getElementById('theme').textContent === 'Light'")
        dark = page_colour()
        assert dark != light
        press(page, "#theme")
        assert page_colour() == light
        page.run("localStorage.clear()")

    def test_printed_page_is_light_and_complete(self, page: Browser) -> None:
        page.prefer("dark")
        page.run(
            "addEventListener('beforeprint', () => { window.printed = ["
            "document.querySelectorAll('.each[open] .about').length,"
            "document.documentElement.dataset.theme]; })"
        )
        pdf = page.call("Page.printToPDF", printBackground=True)["data"]
        assert len(pdf) > 50_000
        assert page.run("window.printed") == [30, "light"]
        assert page.run("document.querySelectorAll('.each[open]').length") == 0
        assert page.complaints() == []

    def test_every_control_has_a_name_and_a_visible_focus(self, page: Browser) -> None:
        unnamed = page.run(
            "[...document.querySelectorAll('button, input, select, canvas[tabindex]')].filter("
            "one => !(one.textContent.trim() || one.getAttribute('aria-label')"
            "|| one.labels?.[0]?.textContent.trim())).map(one => one.outerHTML)"
        )
        assert unnamed == []
        page.key("Tab")
        outline = page.run("getComputedStyle(document.activeElement).outlineStyle")
        assert page.run("document.activeElement.textContent") == "Skip to the content"
        assert outline == "solid"


# Texts from right to left.


def test_texts_from_right_to_left_begin_at_the_right(browser: Browser, tmp_path: Path) -> None:
    result = read_run(write_fake_run(tmp_path, 60, 2, 1, 1))
    first, second, *others = result.categories
    arabic = [text for group in MESSAGES["ar"].values() for text in group]
    first = replace(first, examples=tuple(arabic[:5]), keywords=("الطرد", "توصيل"))
    second = replace(second, examples=("Where is my parcel?", "A 2nd text"))
    corpus = replace(result.corpus, texts=(arabic * 4)[:60])
    categories = (first, second, *others)
    mixed = replace(result, categories=categories, corpus=corpus, fit=np.linspace(0, 1, 60))
    page = opened(browser, write_report(mixed, tmp_path / "report.html"))
    page.run("document.querySelectorAll('details').forEach(one => one.open = true)")

    def edges(start: str) -> tuple[str, float, float]:
        """Return the direction of a quoted text, and its distances to both edges of its item."""
        found = page.run(
            "(() => { const text = [...document.querySelectorAll('.quotes .text')].find(one =>"
            f" one.textContent.startsWith({json.dumps(start)}) && one.getClientRects().length);"
            "const item = text.closest('li'), a = text.getBoundingClientRect(),"
            " b = item.getBoundingClientRect();"
            "return [getComputedStyle(item).direction, a.left - b.left, b.right - a.right]; })()"
        )
        return found[0], found[1], found[2]

    direction, left, right = edges(arabic[1])
    assert direction == "rtl"
    assert right < 20 < left
    direction, left, right = edges("Where is my parcel?")
    assert direction == "ltr"
    assert left < 20 < right
    lines = page.run(
        "[...document.querySelectorAll('.finding li')]"
        ".filter(one => one.textContent.includes('(fit'))"
        ".map(one => [getComputedStyle(one).direction, one.querySelectorAll('bdi').length])"
    )
    assert lines
    assert {tuple(line) for line in lines} == {("ltr", 2)}  # text and remark, each isolated
