"""Texts of a category to search and download, columns to filter and colour by, names on the map."""

import csv
import io
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.browser import Browser
from support.fake_run import write_fake_run
from support.pages import data_of, frame, opened, press, write_in

from newfound.describing.volume import with_volumes
from newfound.report import write_report
from newfound.report.columns import MOST_VALUES
from newfound.report.data import prepare
from newfound.result import Result
from newfound.storage.run_folder import read_run


def with_columns(result: Result) -> Result:
    """Return a result whose table has a channel, a date and a column of many values."""
    count = len(result.corpus)
    columns = {
        "channel": [("mail", "chat", "mail", "")[i % 4] for i in range(count)],
        "many": [str(i) for i in range(count)],
        "day": [f"2024-05-{1 + i % 10:02}" if i % 7 else "" for i in range(count)],
    }
    corpus = replace(result.corpus, columns=columns, time_column="day")
    volumes = with_volumes(result.categories, corpus, result.assigned)
    return replace(result, corpus=corpus, categories=volumes)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return with_columns(read_run(write_fake_run(tmp_path_factory.mktemp("run"), 600, 8, 6, 1)))


@pytest.fixture(scope="module")
def path(result: Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(result, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def page(browser: Browser, path: Path) -> Browser:
    return opened(browser, path)


def choose(page: Browser, selector: str, value: str) -> None:
    """Choose an option of a list."""
    page.run(
        f"(() => {{ const one = document.querySelector('{selector}'); one.value = '{value}';"
        "one.dispatchEvent(new Event('change')); })()"
    )


def amounts(page: Browser) -> dict[str, str]:
    """Return the texts of each category as the table shows them."""
    rows = page.run(
        "[...document.querySelectorAll('#table-body tr')].map(row => ["
        "row.querySelector('button.name').textContent,"
        "row.querySelector('.amount').firstChild.data])"
    )
    return dict(rows)


def test_columns_with_few_values_are_on_the_page(result: Result) -> None:
    texts = prepare(result)["texts"]
    assert [column["name"] for column in texts["columns"]] == ["channel"]
    assert texts["columns"][0]["values"] == ["mail", "", "chat"]
    values = [texts["columns"][0]["values"][at] for at in texts["columns"][0]["of"]]
    assert values == result.corpus.columns["channel"]
    assert texts["time"]["unit"] == "day"
    assert texts["time"]["values"][0] == "2024-05-01"
    many = {"n": [str(i % (MOST_VALUES + 1)) for i in range(600)], "one": ["x"] * 600}
    other = replace(result, corpus=replace(result.corpus, columns=many, time_column=None))
    assert prepare(other)["texts"]["columns"] == []
    assert prepare(other)["texts"]["time"] is None


def test_ids_that_are_row_numbers_take_no_room(result: Result) -> None:
    assert prepare(result)["texts"]["ids"] == result.corpus.ids
    numbered = replace(result.corpus, ids=[str(i + 1) for i in range(600)])
    assert prepare(replace(result, corpus=numbered))["texts"]["ids"] is None


def test_filters_narrow_the_table_and_the_list(page: Browser, result: Result) -> None:
    chats = np.array([cell == "chat" for cell in result.corpus.columns["channel"]])
    sizes = Counter(result.labels[chats].tolist())
    choose(page, "#narrowing label:nth-child(2) select", "2")
    title = page.run("document.querySelector('#panel h3').textContent")
    assert title == f"{chats.sum()} texts found"
    for category in result.categories:
        assert amounts(page)[category.name] == f"{sizes[category.name]} of {category.size}"
    choose(page, "#narrowing label:nth-child(3) select", "8")  # from the ninth of May
    choose(page, "#narrowing label:nth-child(4) select", "8")
    days = np.array([cell == "2024-05-09" for cell in result.corpus.columns["day"]])
    title = page.run("document.querySelector('#panel h3').textContent")
    assert title == f"{(chats & days).sum()} texts found"
    for at in (2, 3, 4):
        choose(page, f"#narrowing label:nth-child({at}) select", "-1")
    first = result.categories[0]
    assert amounts(page)[first.name] == str(first.size)


def test_columns_colour_the_map_and_its_legend(page: Browser) -> None:
    def colours() -> list[str]:
        frame(page)
        return page.run(
            "(() => { const one = document.getElementById('map-canvas'), seen = {};"
            "const all = one.getContext('2d').getImageData(0, 0, one.width, one.height).data;"
            "for (let i = 0; i < all.length; i += 4) if (all[i + 3] > 200) {"
            "  const key = all.slice(i, i + 3).join(); seen[key] = (seen[key] || 0) + 1; }"
            "const most = Math.max(...Object.values(seen));"  # edges of marks have other colours
            "return Object.keys(seen).filter(key => seen[key] > most / 5); })()"
        )

    press(page, "#map-names")
    by_category = colours()
    choose(page, "#map-colour", "0")
    assert len(colours()) < len(by_category)
    legend = "[...document.querySelectorAll('#map-legend li')].map(one => one.textContent)"
    assert page.run(legend) == ["mail", "(empty)", "chat"]
    choose(page, "#map-colour", "time")
    assert page.run(legend)[0] == "from 2024-05-01"
    assert page.run(legend)[-1] == "no date"
    choose(page, "#map-colour", "category")
    assert colours() == by_category


def test_legend_names_every_category_and_selects_it(page: Browser, result: Result) -> None:
    keys = page.run("[...document.querySelectorAll('.key bdi')].map(one => one.textContent)")
    assert sorted(keys) == sorted(category.name for category in result.categories)
    frame(page)
    press(page, "#map-legend li:nth-child(3) .key")
    assert page.run("document.querySelector('#panel h3.name').textContent") == keys[2]


@pytest.mark.parametrize(("width", "phone"), [(1280, False), (390, True)])
def test_names_on_the_map_do_not_overlap(
    browser: Browser, tmp_path: Path, width: int, phone: bool
) -> None:
    run = read_run(write_fake_run(tmp_path, 1_500, 45, 25, 3))
    page = opened(browser, write_report(run, tmp_path / "report.html"), width, phone)
    page.run(
        "(() => { window.boxes = []; const proto = CanvasRenderingContext2D.prototype,"
        "fill = proto.fillText; proto.fillText = function (text, x, y) {"
        "  const half = this.measureText(text).width / 2; window.boxes.push([text, x, y, half]);"
        "  return fill.call(this, text, x, y); }; })()"
    )
    page.run("document.getElementById('map-names').click()")
    page.run("document.getElementById('map-names').click()")
    frame(page)
    boxes = page.run("window.boxes")
    # Nearly every category is identified, by its name or its number in the legend.
    assert len(boxes) >= (54 if phone else 65)
    assert sum(not text.isdigit() for text, *_ in boxes) >= (1 if phone else 15)
    for at, (one, x, y, half) in enumerate(boxes):
        for other, x2, y2, half2 in boxes[:at]:
            assert abs(x - x2) >= half + half2 or abs(y - y2) >= 11, (one, other)


def test_texts_of_a_category_can_be_searched_and_downloaded(page: Browser, result: Result) -> None:
    press(page, "#table-body tr:nth-child(1) button.name")
    data = data_of(page)
    name = page.run("document.querySelector('#panel h3.name').textContent")
    at = [category["name"] for category in data["categories"]].index(name)
    rows = np.flatnonzero(result.assigned == at)
    page.run(
        "URL.createObjectURL = (blob) => { window.saved = blob.text(); return 'blob:null/x'; };"
        "HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; }"
    )
    save = "[...document.querySelectorAll('#panel .list-tools button')][0].click()"
    page.run(save)
    table = list(csv.DictReader(io.StringIO(page.run("window.saved").removeprefix("\ufeff"))))
    assert sorted(row["text"] for row in table) == sorted(result.corpus.texts[i] for i in rows)
    by_id = {row["id"]: row for row in table}
    for i in rows:
        row = by_id[result.corpus.ids[i]]
        assert row["category"] == name
        assert row["channel"] == result.corpus.columns["channel"][i]
        assert row["day"] == result.corpus.columns["day"][i]
        assert float(row["probability"]) == pytest.approx(result.probability[i], abs=0.0051)
    assert page.run("window.savedAs").endswith(".csv")

    write_in(page, "#panel .list-tools input", "monday")
    wanted = [result.corpus.texts[i] for i in rows if "monday" in result.corpus.texts[i].lower()]
    page.wait(
        "document.querySelector('#panel .list-tools [role=status]').textContent"
        f" === '{len(wanted)} of {len(rows)}'"
    )
    page.run(save)
    table = list(csv.DictReader(io.StringIO(page.run("window.saved").removeprefix("\ufeff"))))
    assert sorted(row["text"] for row in table) == sorted(wanted)


def test_download_is_safe_for_spreadsheets_and_needs_no_network(
    browser: Browser, tmp_path: Path
) -> None:
    run = read_run(write_fake_run(tmp_path, 300, 16, 6, 1, evil=True))
    page = opened(browser, write_report(run, tmp_path / "report.html"))
    page.run(
        "(() => { const make = URL.createObjectURL; window.saved = [];"
        "URL.createObjectURL = (blob) => {"
        "  window.saved.push(blob.text()); return make(blob); }; })()"
    )
    page.call("Browser.setDownloadBehavior", behavior="deny")
    press(page, "#each-all")
    page.run("document.querySelectorAll('.list-tools button').forEach(one => one.click())")
    for text in page.run("Promise.all(window.saved)"):
        for row in csv.reader(io.StringIO(text.removeprefix("\ufeff"))):
            assert len(row) == 5
            assert not any(cell[:1] in "=+-@\t\r\n" for cell in row if cell)
    assert [line for line in page.complaints() if "Content Security" in line] == []


def test_volume_over_time_is_shown(page: Browser, result: Result) -> None:
    press(page, "#table-body tr:nth-child(2) button.name")
    name = page.run("document.querySelector('#panel h3.name').textContent")
    volume = next(c.volume for c in result.categories if c.name == name)
    bars = page.run(
        "[...document.querySelectorAll('#panel .volume title')].map(one => one.textContent)"
    )
    assert bars == [f"{day}: {count}" for day, count in volume]
    assert page.run("document.querySelectorAll('#table-body .spark').length") == 14


def test_groups_open_level_by_level(browser: Browser, result: Result, tmp_path: Path) -> None:
    groups = [("cards", "money"), ("cards", "money"), ("refunds", "money"), ("apps", "apps")]
    categories = tuple(
        replace(category, groups=groups[at % 4]) for at, category in enumerate(result.categories)
    )
    tree = replace(result, categories=categories)
    page = opened(browser, write_report(tree, tmp_path / "report.html"))

    def shown() -> list[str]:
        frame(page)
        return page.run(
            "[...document.querySelectorAll('#tree summary b, #tree .pick bdi')]"
            ".filter(one => one.checkVisibility()).map(one => one.textContent)"
        )

    assert sorted(shown()) == ["apps", "money"]
    press(page, "#tree summary")
    assert {"money", "apps", "cards", "refunds"} == set(shown())
    press(page, "#tree .group .group summary")
    assert len(shown()) > 4
    press(page, "#tree .pick")
    assert page.run("document.querySelector('#panel h3.name')") is not None
    page = opened(browser, write_report(result, tmp_path / "report.html"))
    assert (
        page.run("document.querySelectorAll('#tree:not([hidden]), nav a[href=\"#tree\"]').length")
        == 0
    )
