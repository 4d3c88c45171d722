"""Figures: PNG and SVG files, the same each time for the same runs."""

import json
import sys
from pathlib import Path

import pytest
from support.bench_fakes import fake_artefact, fake_line

from benchmarks.rendering.__main__ import main
from benchmarks.rendering.drawing import TAGS, category_title
from newfound.bench.lines import append_line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with result lines and artefacts."""
    results, artefacts = tmp_path / "results", tmp_path / "artefacts"
    for ratio in (0.25, 0.5, 0.75):
        for method in ("dpn", "semi-km"):
            for seed in range(2):
                line = fake_line(method=method, seed=seed, known_ratio=ratio)
                append_line(results / "banking.jsonl", line)
    artefacts.mkdir()
    for method in ("dpn", "semi-km"):
        artefact = fake_artefact("stackoverflow", method, known=15, novel=5)
        (artefacts / f"{method}.json").write_text(json.dumps(artefact))
    return tmp_path


def test_figures_are_reproducible(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    pictures: list[dict[str, bytes]] = []
    for _ in range(2):
        assert main(["figures", "--benchmarks", str(folder)]) == 0
        drawn = list((folder / "figures").iterdir())
        pictures.append({path.name: path.read_bytes() for path in drawn})
        for path in drawn:
            path.unlink()
    names = ("fig3", "fig4", "fig5", "curves-stackoverflow")
    assert set(pictures[0]) == {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    assert pictures[0] == pictures[1]
    assert "curves-banking: skipped, because there are no runs for it" in capsys.readouterr().err
    # Text stays text in the SVG, so what is written in it can be read off.
    heat, ratios, maps, losses = (pictures[0][f"{name}.svg"].decode() for name in names)
    for text in ("novel 5", "labelled prototypes", "Euclidean distance", "wordpress"):
        assert text in heat
    for text in ("Known", "Novel", "Semi-KM", "share of known categories", "0.25"):
        assert text in ratios
    for text in ("Semi-KM, minilm", "DPN, minilm", "haskell"):
        assert text in maps
    for text in ("masked words", "validation accuracy", "kept: epoch 60", "training: loss"):
        assert text in losses


def test_error_without_matplotlib_names_the_extra(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["figures", "--benchmarks", str(folder)]) == 2
    assert "newfound[plot]" in capsys.readouterr().err


def test_error_names_a_damaged_artefact(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    (folder / "artefacts" / "bad.json").write_text('{"data_set": "clinc"')
    assert main(["figures", "--benchmarks", str(folder)]) == 2
    assert "bad.json is damaged" in capsys.readouterr().err


def test_stackoverflow_labels_read_as_tags(paper_data: Path) -> None:
    from newfound.bench.datasets import read_data_set

    data = read_data_set(paper_data, "stackoverflow")
    tags = TAGS.split(", ")
    assert len(tags) == len(data.categories) == 20
    for label in data.categories:
        # A tag's first word is commoner in its own category than in all others together.
        word = category_title("stackoverflow", label).split("-")[0]
        own = [word in t.lower() for t, c in _train(data) if c == label]
        others = [word in t.lower() for t, c in _train(data) if c != label]
        assert sum(own) > sum(others), (label, word)


def _train(data):  # type: ignore[no-untyped-def]
    return zip(data.texts["train"], data.labels["train"], strict=True)
