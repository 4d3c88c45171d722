"""The report without a browser: what is read, what is pointed out, what stands in the file."""

import base64
import hashlib
import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fake_run import EVIL, write_fake_run

from newfound.category import Category
from newfound.checking.check import Check, MethodCheck
from newfound.checking.forecast import Whole
from newfound.checking.scores import DrawScores
from newfound.cli.main import build_parser
from newfound.clustering.estimate import Estimate
from newfound.data.corpus import Corpus
from newfound.errors import InputError
from newfound.lineage import id_of_number
from newfound.report import write_report
from newfound.report.data import prepare
from newfound.report.findings import findings
from newfound.report.findings.shape import parts
from newfound.report.page import page
from newfound.report.sample import SAMPLE, map_sample
from newfound.report.shown import UNSEEN, embedded, shown
from newfound.result import Result
from newfound.storage.run_folder import read_run


def category(at: int, kind: str, size: int, total: int, **other: Any) -> Category:
    values = {
        "id": id_of_number(at + 1), "name": f"{kind} {at}", "kind": kind,
        "status": "known" if kind == "known" else "proposed", "size": size, "share": size / total,
        "labelled": size // 3 if kind == "known" else 0, "keywords": ("one", "two"),
        "examples": ("typical",), "border": ("border",), "confidence": 0.9 - 0.001 * at,
        "nearest": id_of_number((at ^ 1) + 1), "nearest_distance": 0.5 + 0.001 * at,
        "distance": 0.1 + 0.001 * at if kind == "known" else None,
    }  # fmt: skip
    return Category(**(values | other))


def quiet_run(known: int = 8, novel: int = 4, each: int = 30) -> Result:
    """Return a result in which nothing deserves a remark."""
    total = (known + novel) * each
    kinds = ["known"] * known + ["novel"] * novel
    of = np.repeat(np.arange(known + novel), each)
    rng = np.random.default_rng(0)
    distances = np.full((known, known + novel), 0.8)
    distances[np.arange(known), np.arange(known)] = 0.1
    categories = [category(i, kind, each, total) for i, kind in enumerate(kinds)]
    labelled = (of < known) & (np.arange(total) % 3 == 0)
    return Result(
        corpus=Corpus(
            texts=[f"text {i}" for i in range(total)],
            labels=[categories[c].name if g else None for c, g in zip(of, labelled, strict=True)],
            ids=[str(i) for i in range(total)],
        ),
        categories=tuple(categories),
        assigned=of,
        predicted=of,
        probability=np.full(total, 0.9),
        positions=rng.normal(size=(total, 2)) + 20 * of[:, None],
        matching=distances,
        config={"seed": 0, "n_categories": "auto"},
        device="cpu",
    )


def changed(run: Result, at: int, **values: Any) -> Result:
    """Return the result with other values for one category."""
    categories = list(run.categories)
    categories[at] = replace(categories[at], **values)
    return replace(run, categories=tuple(categories))


def with_values(run: Result, name: str, rows: Any, value: Any) -> Result:
    """Return the result with a value in some rows of one of its arrays."""
    array = getattr(run, name).copy()
    array[rows] = value
    return replace(run, **{name: array})


def labelled_texts(run: Result, category: int) -> np.ndarray:
    """Return the rows of a category's labelled texts."""
    return np.flatnonzero(run.labelled & (run.assigned == category))


def with_labels(run: Result, rows: np.ndarray) -> Result:
    """Return the result with labels also on the texts of a mask."""
    names = run.labels
    labels = [
        name if more else label
        for name, more, label in zip(names, rows, run.corpus.labels, strict=True)
    ]
    return replace(run, corpus=replace(run.corpus, labels=labels))


def found(run: Result) -> dict[str, list[tuple[int, int | None]]]:
    return {f.kind: [(i.category, i.other) for i in f.items] for f in findings(run)}


class TestReading:
    @pytest.mark.parametrize("parquet", [False, True])
    def test_texts_are_read_back_unchanged(self, tmp_path: Path, parquet: bool) -> None:
        run = read_run(write_fake_run(tmp_path, 60, 16, 4, 0, evil=True, parquet=parquet))
        assert len(run.corpus) == 60
        assert set(EVIL) <= set(run.corpus.texts)
        assert run.map_positions.shape == (60, 2)
        assert run.labelled.sum() == sum(c.labelled for c in run.categories)
        sizes = np.bincount(run.assigned, minlength=20)
        assert [c.size for c in run.categories] == sizes.tolist()

    def test_words_such_as_na_and_none_are_texts(self, tmp_path: Path) -> None:
        write_fake_run(tmp_path, 30, 3, 2, 0)
        table = pd.read_csv(tmp_path / "assignments.csv", dtype=str, keep_default_na=False)
        table.loc[:2, "text"] = ["NA", "null", "None"]
        table.to_csv(tmp_path / "assignments.csv", index=False)
        assert read_run(tmp_path).corpus.texts[:3] == ["NA", "null", "None"]

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_line_ends_inside_texts_are_kept(self, tmp_path: Path, end: str) -> None:
        write_fake_run(tmp_path, 30, 3, 2, 0)
        table = pd.read_csv(tmp_path / "assignments.csv", dtype=str, keep_default_na=False)
        wanted = ["one\rtwo", "one\ntwo", "one\r\ntwo", "\x00 and \x1a"]
        table.loc[:3, "text"] = wanted
        table.to_csv(tmp_path / "assignments.csv", index=False, lineterminator=end)
        run = read_run(tmp_path)
        assert run.corpus.texts[:4] == wanted
        assert np.isfinite(run.map_positions).all()

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_private_use_characters_are_kept(self, tmp_path: Path, end: str) -> None:
        write_fake_run(tmp_path, 30, 3, 2, 0)
        table = pd.read_csv(tmp_path / "assignments.csv", dtype=str, keep_default_na=False)
        wanted = ["one\rtwo", "\ue000 and \ue001"]
        table.loc[:1, "text"] = wanted
        table.to_csv(tmp_path / "assignments.csv", index=False, lineterminator=end)
        assert read_run(tmp_path).corpus.texts[:2] == wanted

    def test_missing_run_folder_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="does not exist"):
            read_run(tmp_path / "absent")

    @pytest.mark.parametrize("name", ["run.json", "categories.json", "assignments.csv"])
    def test_missing_file_is_named(self, tmp_path: Path, name: str) -> None:
        write_fake_run(tmp_path, 30, 3, 2, 0)
        (tmp_path / name).unlink()
        with pytest.raises(InputError, match=re.escape(name)):
            read_run(tmp_path)

    @pytest.mark.parametrize("name", ["run.json", "categories.json"])
    @pytest.mark.parametrize("content", ['{"half', '"text"'])
    def test_damaged_file_is_named(self, tmp_path: Path, name: str, content: str) -> None:
        write_fake_run(tmp_path, 30, 3, 2, 0)
        (tmp_path / name).write_text(content)
        with pytest.raises(InputError, match=re.escape(name)):
            read_run(tmp_path)

    def test_other_format_is_an_error(self, tmp_path: Path) -> None:
        write_fake_run(tmp_path, 30, 3, 2, 0)
        (tmp_path / "run.json").write_text('{"format": 99}')
        with pytest.raises(InputError, match="format 99"):
            read_run(tmp_path)

    def test_missing_column_is_named(self, tmp_path: Path) -> None:
        write_fake_run(tmp_path, 30, 3, 2, 0)
        table = pd.read_csv(tmp_path / "assignments.csv").drop(columns="probability")
        table.to_csv(tmp_path / "assignments.csv", index=False)
        with pytest.raises(InputError, match="'probability'"):
            read_run(tmp_path)

    def test_category_of_another_run_is_named_with_its_row(self, tmp_path: Path) -> None:
        write_fake_run(tmp_path, 30, 3, 2, 0)
        table = pd.read_csv(tmp_path / "assignments.csv", keep_default_na=False)
        table.loc[4, "category"] = "stranger"
        table.to_csv(tmp_path / "assignments.csv", index=False)
        with pytest.raises(InputError, match=r"row 5: .*'stranger'"):
            read_run(tmp_path)

    def test_incomplete_history_line_is_skipped(self, tmp_path: Path) -> None:
        write_fake_run(tmp_path, 30, 3, 2, 0)
        whole = len(read_run(tmp_path).history)
        with (tmp_path / "history.jsonl").open("a") as file:
            file.write('{"stage": "trai')
        assert len(read_run(tmp_path).history) == whole


class TestShown:
    @given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=80), st.integers(1, 60))
    def test_invisible_characters_are_made_visible(self, text: str, limit: int) -> None:
        seen = shown(text, limit)
        assert not UNSEEN.search(seen)
        seen.encode("utf-8")

    @given(st.text(alphabet="abc ?!é漢字שלום😀", max_size=50))
    def test_ordinary_text_is_unchanged(self, text: str) -> None:
        assert shown(text, 50) == text

    def test_long_text_is_truncated(self) -> None:
        assert shown("W" * 100_000, 300) == "W" * 300 + "…"

    def test_direction_overrides_are_shown_and_direction_marks_kept(self) -> None:
        assert shown("a\u202eb", 9) == "a⟦U+202E⟧b"
        assert shown("\u200f\u05e9\u05dc", 9) == "\u200f\u05e9\u05dc"

    @given(st.recursive(st.text() | st.integers(), lambda kids: st.lists(kids, max_size=4)))
    def test_embedded_json_has_no_markup_and_is_read_back(self, value: Any) -> None:
        text = embedded(value)
        assert not set(text) & set("<>&\u2028\u2029")
        assert json.loads(text) == value


class TestFindings:
    def test_run_without_problems_has_no_findings(self) -> None:
        assert findings(quiet_run()) == []

    def test_known_category_without_unlabelled_texts_is_found(self) -> None:
        run = quiet_run()
        assert found(with_labels(run, run.assigned == 3)) == {"absent": [(3, 2)]}

    def test_absence_is_not_reported_if_all_texts_are_labelled(self) -> None:
        run = quiet_run(novel=0)
        assert "absent" not in found(with_labels(run, run.assigned >= 0))

    def test_novel_category_close_to_a_known_one_is_found(self) -> None:
        run = changed(quiet_run(), 9, nearest="c3", nearest_distance=0.2)
        assert found(run) == {"same": [(9, 2)]}
        # The same distance to a novel category, or of a known one, is not reported.
        assert found(changed(quiet_run(), 9, nearest_distance=0.2)) == {}
        assert found(changed(quiet_run(), 2, nearest="c10", nearest_distance=0.2)) == {}

    def test_novel_category_as_close_as_the_match_is_found(self) -> None:
        run = with_values(quiet_run(), "matching", (4, 10), 0.105)
        assert found(run) == {"same": [(10, 4)]}

    def test_novel_category_with_many_labelled_texts_is_found(self) -> None:
        run = quiet_run()
        run = with_values(run, "predicted", labelled_texts(run, 1)[:6], 8)
        assert found(run) == {"same": [(8, 1)]}

    def test_known_category_with_many_texts_of_another_label_is_found(self) -> None:
        run = quiet_run()
        run = with_values(run, "predicted", labelled_texts(run, 1)[:6], 5)
        assert found(run) == {"doubted": [(1, 5)]}

    def test_few_differing_predictions_are_not_reported(self) -> None:
        run = quiet_run()
        run = with_values(run, "predicted", labelled_texts(run, 1)[:2], 8)
        assert found(run) == {}

    def test_category_with_two_groups_is_found(self) -> None:
        run = quiet_run()
        rows = np.flatnonzero(run.assigned == 6)[:12]
        run = with_values(run, "positions", rows, run.map_positions[rows] + 9)
        assert found(run) == {"two": [(6, None)]}

    def test_small_categories_are_found(self) -> None:
        assert found(changed(quiet_run(), 11, size=4)) == {"small": [(11, None)]}
        assert found(changed(quiet_run(), 11, size=5)) == {}

    def test_category_with_low_confidence_is_found(self) -> None:
        assert found(changed(quiet_run(), 5, confidence=0.6)) == {"mixed": [(5, 4)]}

    def test_category_far_from_its_labels_is_found(self) -> None:
        assert found(changed(quiet_run(), 5, distance=0.4)) == {"far": [(5, None)]}

    def test_dominant_category_is_found(self) -> None:
        assert found(changed(quiet_run(), 5, share=0.6)) == {"dominant": [(5, None)]}

    def test_unsure_overall_counts_only_texts_without_a_label(self) -> None:
        run = quiet_run()
        low = np.where(run.labelled, 0.1, 0.9)
        assert found(replace(run, probability=low)) == {}
        assert found(replace(run, probability=1 - low)) == {"unsure": []}

    def test_known_category_split_into_novel_ones_is_found(self) -> None:
        run = quiet_run()
        best = np.where(run.assigned == 9, 3, 0)
        half = np.where(run.assigned == 9, 0.5, 0.1) * run.probability
        assert "split" not in {f.kind for f in findings(replace(run, best_known=best))}
        evident = replace(run, best_known=best, best_known_probability=half)
        (item,) = {f.kind: f for f in findings(evident)}["split"].items
        assert (item.category, item.other) == (9, 3)
        assert item.text.startswith("100% of its texts")
        assert "50% as probable" in item.text
        mixed = np.where(np.arange(len(best)) % 2 == 0, best, 5)  # of two known categories
        for other in (
            replace(evident, best_known=mixed),
            replace(evident, best_known_probability=0.5 * half),
            replace(evident, best_known=np.full(len(best), -1)),
        ):
            assert "split" not in {f.kind for f in findings(other)}

    def test_uncertain_number_of_categories_is_found(self) -> None:
        run = quiet_run()
        sure = Estimate(12, [8, 12, 16], [0.1, 0.5, 0.2], low=11, high=13, how="")
        assert found(replace(run, estimate=sure)) == {}
        assert found(replace(run, estimate=replace(sure, low=8, high=16))) == {"wide": []}
        assert found(replace(run, estimate=replace(sure, at_limit=True))) == {"limit": []}

    def test_run_without_novel_categories_is_found(self) -> None:
        assert found(quiet_run(novel=0)) == {"no-novel": []}

    def test_notes_come_last_and_are_limited(self) -> None:
        notes = tuple(f"note {i}" for i in range(60))
        run = replace(changed(quiet_run(), 11, size=4), notes=notes)
        last = findings(run)[-1]
        assert (last.kind, last.level, len(last.lines)) == ("notes", "note", 51)
        assert last.lines[-1] == "and 10 more in run.json"


class TestShape:
    @pytest.mark.parametrize("seed", range(20))
    def test_one_cloud_is_one_group(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        assert parts(rng.normal(size=(40, 2)) * [3, 1]) is None
        assert parts(rng.random((200, 2))) is None

    @pytest.mark.parametrize("angle", np.linspace(0, np.pi, 7))
    def test_two_clouds_are_two_groups_in_any_direction(self, angle: float) -> None:
        rng = np.random.default_rng(3)
        away = 8 * np.array([np.cos(angle), np.sin(angle)])
        cloud = np.concatenate([rng.normal(size=(50, 2)), rng.normal(size=(30, 2)) + away])
        assert parts(cloud) == (50, 30)

    def test_outliers_and_few_points_are_not_a_second_group(self) -> None:
        rng = np.random.default_rng(4)
        cloud = np.concatenate([rng.normal(size=(90, 2)), rng.normal(size=(5, 2)) + 40])
        assert parts(cloud) is None
        assert parts(np.array([[0.0, 0.0], [9.0, 9.0]] * 5)) is None
        assert parts(np.zeros((50, 2))) is None


class TestSample:
    def test_all_texts_are_shown_below_the_limit(self) -> None:
        assert map_sample(np.zeros(99_999, dtype=np.int64), 0) is None

    def test_sample_keeps_shares_and_small_categories(self) -> None:
        category = np.repeat([0, 1, 2], [60_000, 39_996, 4])
        chosen = map_sample(category, 0)
        assert chosen is not None
        assert len(chosen) == len(set(chosen.tolist())) == SAMPLE
        counts = np.bincount(category[chosen])
        assert counts[2] == 4
        assert abs(counts[0] / SAMPLE - 0.6) < 0.01
        again = map_sample(category, 0)
        assert again is not None
        assert (again == chosen).all()


class TestData:
    def test_proposed_commands_are_valid(self, tmp_path: Path) -> None:
        data = prepare(read_run(write_fake_run(tmp_path / "a run", 60, 3, 2, 1)), "a run")
        proposed = [step["code"] for step in data["steps"] if "code" in step]
        assert proposed
        for command in proposed:
            program, *arguments = shlex.split(command)
            assert program == "newfound"
            assert hasattr(build_parser().parse_args(arguments), "run")

    def test_a_check_is_shown_where_there_is_one(self) -> None:
        draws = (
            DrawScores(80.0, 85.0, 70.0, 84.0, 50.0, 50.0, 4.0, 14, 2, 9, 20),
            DrawScores(70.0, 75.0, 60.0, 74.0, 50.0, 0.0, 6.0, 12, 2, 9, 20),
        )
        whole = Whole(80.0, 60.0, 0.5, 13)
        check = Check((MethodCheck("dpn\x07", draws, 3.0, whole),), 360, 80, 8, 0.25, {})
        assert prepare(quiet_run())["check"] is None
        shown_check = prepare(quiet_run(), check=check)["check"]
        assert "About 70% of the unlabelled texts" in shown_check["sentences"][0]
        assert "hid 2 of 8 known categories" in shown_check["sentences"][1]
        assert "79% of the texts of known" in shown_check["sentences"][2]
        ((method, *cells),) = shown_check["rows"]
        assert not UNSEEN.search(method)
        assert len(cells) + 1 == len(shown_check["columns"])
        assert cells[:2] == ["70", "75.0 \u00b1 7.1"]

    def test_headline_adds_up(self, tmp_path: Path) -> None:
        run = read_run(write_fake_run(tmp_path, 500, 9, 4, 1))
        data = prepare(run)
        assert data["title"] == "500 texts: 9 known and 4 novel categories"
        assert sum(part["texts"] for part in data["bar"]) == 500
        assert [number["value"] for number in data["numbers"][:3]] == ["500", "9", "4"]
        for entry, one in zip(data["categories"], run.categories, strict=True):
            assert entry["size"] == one.size == one.labelled + entry["pile"]

    def test_map_keeps_positions_up_to_scale(self) -> None:
        run = quiet_run()
        texts = prepare(run)["texts"]
        placed = np.stack([texts["x"], texts["y"]], axis=1).astype(float) * [1, -1]
        wanted = run.map_positions - run.map_positions.mean(axis=0)
        placed -= placed.mean(axis=0)
        scale = (placed * wanted).sum() / (wanted**2).sum()
        assert np.abs(placed - scale * wanted).max() < 2

    def test_text_without_a_position_is_left_out_and_counted(self) -> None:
        run = with_values(quiet_run(), "positions", 7, np.nan)
        texts = prepare(run)["texts"]
        assert (len(texts["text"]), texts["unplaced"]) == (len(run.corpus) - 1, 1)
        assert "text 7" not in texts["text"]

    def test_differing_prediction_is_kept(self) -> None:
        run = with_values(quiet_run(), "predicted", 0, 9)
        data = prepare(run)
        assert data["texts"]["predicted"] == {0: 9}
        assert data["categories"][0]["moved"] == [[9, 1]]

    def test_large_run_is_sampled(self) -> None:
        texts = prepare(quiet_run(each=9_000))["texts"]
        assert (texts["sampled"], texts["total"]) == (True, 108_000)
        assert len(texts["text"]) == len(texts["x"]) == len(texts["given"]) == SAMPLE

    @pytest.mark.parametrize("text", ["plain words " * 90, "漢字" * 400, "<&>" * 200])
    def test_twenty_thousand_texts_stay_under_eight_megabytes(self, text: str) -> None:
        run = quiet_run(known=100, novel=60, each=125)
        many = [replace(c, examples=(text,) * 5, border=(text,) * 5) for c in run.categories]
        texts = [f"{i} {text}" for i in range(20_000)]
        corpus = replace(run.corpus, texts=texts)
        run = replace(run, corpus=corpus, categories=tuple(many))
        data = prepare(run)
        assert len(page(data).encode("utf-8")) < 8_000_000
        # No more is cut away than must be.
        assert data["texts"]["limit"] >= 40

    def test_page_data_has_no_nan(self) -> None:
        run = changed(quiet_run(), 0, confidence=float("nan"), nearest=None)
        run = with_values(run, "probability", 3, np.nan)
        run = replace(run, history=({"stage": "training", "epoch": 1, "loss": float("inf")},))
        data = prepare(run)
        embedded(data)
        assert data["categories"][0]["confidence"] is None
        assert data["texts"]["probability"][3] == -1
        assert data["curves"] == []

    def test_curves_keep_their_order_and_points(self, tmp_path: Path) -> None:
        curves = prepare(read_run(write_fake_run(tmp_path, 40, 3, 2, 0)))["curves"]
        assert [(c["stage"], c["name"]) for c in curves][:3] == [
            ("pretraining", "loss"),
            ("pretraining", "validation_accuracy"),
            ("training", "loss"),
        ]
        assert curves[0]["points"][:2] == [[1, 3.0], [2, 1.5]]

    def test_loss_with_one_term_is_one_curve(self) -> None:
        rows = [
            {"stage": "training", "epoch": e, "loss": 1 / e, "term": 1 / e, "other": 2.0}
            for e in (1, 2, 3)
        ]
        curves = prepare(replace(quiet_run(), history=tuple(rows)))["curves"]
        assert [curve["name"] for curve in curves] == ["loss", "other"]

    def test_scores_are_percentages(self) -> None:
        run = replace(quiet_run(), scores={"all": 57.2, "known": 71.2, "novel": None})
        shown_score = prepare(run)["numbers"][-1]
        assert (shown_score["value"], shown_score["note"]) == (
            "57%",
            "known 71%",
        )

    def test_run_without_records_is_shown(self) -> None:
        run = quiet_run(known=0, novel=3)
        data = prepare(replace(run, matching=None, config={}))
        assert (data["matching"], data["estimate"], data["curves"]) == (None, None, [])
        assert data["title"] == "90 texts: 0 known and 3 novel categories"


class Markup(HTMLParser):
    """Collect the elements of a page, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag
        if tag in self.inside:
            self.inside[tag].append("")

    def handle_data(self, data: str) -> None:
        if self._open in self.inside:
            self.inside[self._open][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._open = ""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the same report twice: with ordinary and with hostile texts."""
    folder = tmp_path_factory.mktemp("pages")
    return [
        write_report(
            read_run(write_fake_run(folder / str(evil), 60, 16, 4, 0, evil=evil)),
            folder / f"{evil}.html",
        ).read_text()
        for evil in (False, True)
    ]


class TestPage:
    def test_malicious_texts_add_no_element(self, pages: list[str]) -> None:
        plain, evil = (Markup(text) for text in pages)
        assert [tag for tag, _ in plain.tags] == [tag for tag, _ in evil.tags]
        assert json.loads(evil.inside["script"][0])["categories"]

    def test_policy_allows_this_script_and_style_and_nothing_else(self, pages: list[str]) -> None:
        markup = Markup(pages[1])
        policy = next(a["content"] for t, a in markup.tags if a.get("http-equiv"))
        digest = {
            tag: base64.b64encode(hashlib.sha256(texts[-1].encode()).digest()).decode()
            for tag, texts in markup.inside.items()
        }
        assert policy == (
            f"default-src 'none'; script-src 'sha256-{digest['script']}'; "
            f"style-src 'sha256-{digest['style']}'; connect-src 'none'; "
            "base-uri 'none'; form-action 'none'"
        )

    def test_page_has_no_external_links(self, pages: list[str]) -> None:
        for _, attributes in Markup(pages[1]).tags:
            assert not {"src", "style", "onclick", "onload"} & set(attributes)
            assert (attributes.get("href") or "#").startswith("#")

    def test_both_dark_palettes_are_equal(self, pages: list[str]) -> None:
        style = Markup(pages[0]).inside["style"][0]
        sets = re.findall(r"\{\s*(color-scheme: dark;.*?)\}", style, flags=re.DOTALL)
        assert len(sets) == 2
        assert sets[0].split() == sets[1].split()

    def test_scripts_never_parse_strings_as_markup_or_code(self, pages: list[str]) -> None:
        script = Markup(pages[0]).inside["script"][-1]
        for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                     "Function(", "fetch(", "XMLHttpRequest", "import("):  # fmt: skip
            assert name not in script


class TestWriting:
    def test_page_shows_the_given_folder_name(self, tmp_path: Path) -> None:
        run = read_run(write_fake_run(tmp_path / "run", 30, 3, 2, 0))
        path = tmp_path / "report.html"
        assert write_report(run, path, name="final run") == path
        assert "newfound report 'final run'" in path.read_text()
        assert str(tmp_path) not in path.read_text()
        assert sorted(file.name for file in tmp_path.iterdir()) == ["report.html", "run"]

    def test_missing_target_folder_is_an_error(self, tmp_path: Path) -> None:
        run = read_run(write_fake_run(tmp_path / "run", 30, 3, 2, 0))
        with pytest.raises(InputError, match="cannot write"):
            write_report(run, tmp_path / "absent" / "report.html")

    def test_report_does_not_import_torch(self) -> None:
        code = "import sys, newfound.report; sys.exit('torch' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

    @settings(max_examples=15, deadline=None)
    @given(name=st.text(min_size=1, max_size=20), text=st.text(max_size=40))
    def test_any_name_and_text_can_be_reported(self, name: str, text: str) -> None:
        run = changed(quiet_run(), 9, name=name, keywords=(text,), examples=(text,))
        texts = [text, *run.corpus.texts[1:]]
        run = replace(run, corpus=replace(run.corpus, texts=texts))
        markup = Markup(page(prepare(run)))
        data = json.loads(markup.inside["script"][0])
        assert data["categories"][9]["name"] == (shown(name, 80) or "(no name)")
