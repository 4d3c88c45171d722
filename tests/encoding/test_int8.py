"""int8: agreement with full precision, cache, and errors."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.small_texts import small_task

from newfound import CategoryDiscoverer, InputError
from newfound.cli.main import main

# Not imported here, because the import would send telemetry.
needs_openvino = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("openvino", "nncf")),
    reason="needs newfound[openvino]",
)


@pytest.fixture
def copied_run(small_run: Path, tmp_path: Path) -> Path:
    """Return a copy of a run that can be written to."""
    return Path(shutil.copytree(small_run, tmp_path / "run"))


def new_table(folder: Path) -> Path:
    path = folder / "new.csv"
    path.write_text("text\nlost my card\nplay a song\nrain and cold\nbook a flight\n\n")
    return path


def test_missing_package_names_the_extra(
    copied_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    table = new_table(tmp_path)
    code = main(["predict", str(copied_run), str(table), "-o", str(tmp_path / "o.csv"), "--int8"])
    reported = capsys.readouterr().err.strip().splitlines()
    assert code == 2
    assert len(reported) == 1
    assert "newfound[openvino]" in reported[0]
    assert not (tmp_path / "o.csv").exists()


def test_model_without_a_run_cannot_be_calibrated(
    copied_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(copied_run / "model"), str(new_table(tmp_path)), "-o", str(tmp_path / "o.csv")]
    assert main(["predict", *arguments, "--int8"]) == 2
    assert "give a run folder" in capsys.readouterr().err


@needs_openvino
def test_predict_converts_once_and_reports_the_agreement(
    copied_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, plain, fast = new_table(tmp_path), tmp_path / "plain.csv", tmp_path / "fast.jsonl"
    assert main(["predict", str(copied_run), str(table), "-o", str(plain)]) == 0
    assert not (copied_run / "model" / "int8").exists()
    capsys.readouterr()
    assert main(["predict", str(copied_run), str(table), "-o", str(fast), "--int8"]) == 0
    first = capsys.readouterr()
    assert re.search(r"int8: mean cosine to full precision (0\.99|1\.00)\d\d, ", first.err)
    # The result and the verdict on texts that fit nowhere, without output of the converter.
    result, verdict = first.out.splitlines()
    assert result == f"4 texts: {fast}"
    assert " fit nowhere (" in verdict
    rows = [json.loads(line) for line in fast.read_text().splitlines()]
    names = [row.split(",")[2] for row in plain.read_text().splitlines()[1:]]
    assert np.mean([row["category"] == name for row, name in zip(rows, names, strict=True)]) > 0.7
    made = (copied_run / "model" / "int8" / "int8.json").stat().st_mtime_ns
    assert main(["predict", str(copied_run), str(table), "-o", str(fast), "--int8", "--force"]) == 0
    assert (copied_run / "model" / "int8" / "int8.json").stat().st_mtime_ns == made
    assert capsys.readouterr().err == first.err
    assert [json.loads(line) for line in fast.read_text().splitlines()] == rows
    # Damaged: one sentence, no traceback.
    for name in ("int8.xml", "int8.bin"):
        path = copied_run / "model" / "int8" / name
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        again = ["predict", str(copied_run), str(table), "-o", str(fast), "--int8", "--force"]
        assert main(again) == 2
        assert f"{name} does not have its recorded sha256" in capsys.readouterr().err
        path.write_bytes(content)


@needs_openvino
def test_estimator_switches_to_int8_and_saves_full_precision(
    small_run: Path, tmp_path: Path
) -> None:
    texts = small_task().texts
    plain = CategoryDiscoverer.load(small_run, "cpu")
    fast = CategoryDiscoverer.load(small_run, "cpu")
    reported = fast.use_int8([*texts, texts[0]])
    assert "int8" in reported
    before, after = plain.transform(texts), fast.transform(texts)
    cosine = (before * after).sum(1) / np.linalg.norm(before, axis=1)
    cosine /= np.linalg.norm(after, axis=1)
    assert cosine.mean() > 0.99
    assert not np.array_equal(before, after)
    # Repeated texts and other texts in the batch do not change a feature.
    again = fast.model_.features([texts[3], texts[0], texts[3]])
    np.testing.assert_array_equal(again[0], again[2])
    np.testing.assert_allclose(again[1], after[0], atol=0.02)
    fast.save(tmp_path / "model")
    restored = CategoryDiscoverer.load(tmp_path / "model", "cpu")
    np.testing.assert_array_equal(restored.transform(texts), before)


@needs_openvino
def test_unwritable_cache_is_ignored(copied_run: Path, tmp_path: Path) -> None:
    (copied_run / "model" / "int8").write_text("a file where the folder would be")
    table, out = new_table(tmp_path), tmp_path / "o.csv"
    assert main(["predict", str(copied_run), str(table), "-o", str(out), "--int8"]) == 0
    assert len(out.read_text().splitlines()) == 5
    assert (copied_run / "model" / "int8").is_file()


@needs_openvino
def test_predict_uses_a_kept_int8_model_that_agrees_and_is_faster(
    copied_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = new_table(tmp_path), tmp_path / "o.csv"

    def predict(*flags: str) -> tuple[str, str, str]:
        """Return the precision, the notes and the answers."""
        arguments = ["predict", str(copied_run), str(table), "-o", str(out), "--force", "--json"]
        capsys.readouterr()
        assert main([*arguments, "--device", "cpu", *flags]) == 0
        printed = capsys.readouterr()
        return json.loads(printed.out)["precision"], printed.err, out.read_text()

    plain = predict()
    assert plain[0] == "fp32"
    assert "int8: " not in plain[1]
    converted = predict("--int8")
    assert converted[0] == "int8"
    assert re.search(r", \d+\.\d times its speed", converted[1])
    about = copied_run / "model" / "int8" / "int8.json"
    recorded = json.loads(about.read_text())
    # Each of the three is needed.
    for cosine, same, speed, wanted in [
        (0.999, 1.0, 3.0, "int8"),
        (0.99, 1.0, 3.0, "fp32"),
        (0.999, 0.98, 3.0, "fp32"),
        (0.999, 1.0, 1.1, "fp32"),
    ]:
        agreement = {"texts": 60, "cosine": cosine, "same": same, "speed": speed}
        about.write_text(json.dumps({**recorded, "agreement": agreement}))
        found = predict()
        assert found[0] == wanted
        assert found[2] == (converted if wanted == "int8" else plain)[2]
        said = "--fp32 encodes in full" if wanted == "int8" else "full precision is used"
        assert said in found[1]
        assert predict("--fp32")[::2] == plain[::2]
    about.write_text("{")
    damaged = predict()
    assert damaged[::2] == plain[::2]
    assert "full precision is used, because the int8 model in" in damaged[1]


@needs_openvino
def test_no_telemetry_is_sent(small_run: Path) -> None:
    code = (
        "import sys; from newfound import CategoryDiscoverer as C; "
        f"C.load({str(small_run)!r}, 'cpu').use_int8(['lost my card', 'play a song']); "
        "print('openvino' in sys.modules, 'openvino_telemetry' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


@needs_openvino
def test_calibration_needs_texts(small_run: Path) -> None:
    with pytest.raises(InputError, match="calibrate"):
        CategoryDiscoverer.load(small_run, "cpu").use_int8([])


@needs_openvino
@pytest.mark.slow
def test_minilm_keeps_its_features_and_categories(tmp_path: Path) -> None:
    from newfound.data import demo

    texts = list(demo.load()["text"])
    found = CategoryDiscoverer("newfound", n_categories=20, effort="fast").fit(texts)
    features, answers = found.transform(texts), found.predict(texts)
    found.use_int8(texts, tmp_path / "int8")
    after = found.transform(texts)
    assert (features * after).sum(1).mean() >= 0.998
    assert np.mean(found.predict(texts) == answers) > 0.95
