"""`Predictor`: batches of any type get the answers of `newfound predict`, in any process."""

import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from support.commands import Command
from support.small_texts import SmallTask

from newfound import InputError, Predictor
from newfound.decisions import Decision, append
from newfound.storage import model_files


@pytest.fixture
def answers(command: Command, task: SmallTask, small_run: Path, tmp_path: Path) -> pd.DataFrame:
    """What `newfound predict` writes for the texts of the task and one empty text."""
    table = pd.DataFrame({"id": [f"n{i}" for i in range(17)], "text": [*task.texts[:16], None]})
    table.to_parquet(tmp_path / "new.parquet")
    out = tmp_path / "out.parquet"
    assert command("predict", small_run, tmp_path / "new.parquet", "-o", out).code == 0
    return pd.read_parquet(out)


def as_rows(found: Any) -> list[dict[str, Any]]:
    """Return a batch as rows, None where a value is missing."""
    table = pa.table(found) if isinstance(found, dict) else found
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


@pytest.mark.parametrize(
    "make",
    [
        lambda columns: columns,
        lambda columns: {name: pd.Series(column).to_numpy() for name, column in columns.items()},
        pd.DataFrame,
        pa.table,
        pa.RecordBatch.from_pydict,
    ],
    ids=["lists", "arrays", "pandas", "arrow", "arrow-batch"],
)
def test_every_type_of_batch_gets_the_answers_of_the_command(
    answers: pd.DataFrame, task: SmallTask, small_run: Path, make: Any
) -> None:
    columns = {
        "id": [f"n{i}" for i in range(17)],
        "channel": [1] * 17,
        "text": [*task.texts[:16], None],
    }
    batch = make(columns)
    found = Predictor(small_run)(batch)
    assert type(found) is type(batch)
    wanted = as_rows(answers)
    wanted[-1]["text"] = ""
    assert as_rows(found) == wanted


def test_numbers_are_texts_as_in_a_parquet_file(small_run: Path) -> None:
    predictor = Predictor(small_run, text_column="text", id_column="key")
    found = predictor({"text": [1.5, float("nan")], "key": [7, 8]})
    assert (found["text"], found["id"]) == (["1.5", ""], ["7", "8"])
    assert predictor({"text": ["a\ud800b"], "key": ["1"]})["text"] == ["a\ufffdb"]
    with pytest.raises(InputError, match="column 'text' of the batch cannot be read as texts"):
        predictor({"text": [["a"], {"b": 1}], "key": [1, 2]})
    with pytest.raises(InputError, match="the batch: there is no column 'text'"):
        predictor({"body": ["a"], "key": ["1"]})


def test_several_text_columns_are_joined(small_run: Path) -> None:
    predictor = Predictor(small_run, text_column=["text", "body"])
    found = predictor({"text": ["lost", None], "body": ["card", "rain"]})
    assert list(found) == list(predictor.columns)
    assert found["text"] == ["lost\ncard", "rain"]
    assert (found["text_"], found["body"]) == (["lost", ""], ["card", "rain"])
    assert found["id"] == [None, None]


def test_an_empty_batch_keeps_its_columns(small_run: Path) -> None:
    predictor = Predictor(small_run)
    found = predictor(pd.DataFrame({"text": pd.Series([], dtype=object)}))
    assert len(found) == 0
    assert list(found.columns) == list(predictor.columns)
    assert found["probability"].dtype == float


def test_options_reach_the_model(small_run: Path, task: SmallTask) -> None:
    found = Predictor(small_run, outside=0.5)({"text": task.texts})
    assert set(found["fits_nowhere"]) == {"yes", "no"}
    with pytest.raises(InputError, match="exclude each other"):
        Predictor(small_run, outside=0.5, false_alarms=0.1)


def test_a_pickled_predictor_is_small_and_answers_in_another_process(
    small_run: Path, task: SmallTask, tmp_path: Path
) -> None:
    predictor = Predictor(small_run)
    wanted = predictor({"text": task.texts[:3]})["category"]
    (tmp_path / "predictor").write_bytes(pickle.dumps(predictor))
    assert (tmp_path / "predictor").stat().st_size < 1000
    code = (
        "import pickle, pathlib; p = pickle.loads(pathlib.Path('predictor').read_bytes())\n"
        f"print(p({{'text': {task.texts[:3]!r}}})['category'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(wanted)


def test_a_process_loads_the_model_once(small_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Path] = []
    plain = model_files.load_model

    def watched(folder: Path, *rest: Any, **more: Any) -> Any:
        loaded.append(folder)
        return plain(folder, *rest, **more)

    monkeypatch.setattr(model_files, "load_model", watched)
    predictor = Predictor(small_run, outside=0.25)
    assert loaded == []
    for copy in (predictor, *(pickle.loads(pickle.dumps(predictor)) for _ in range(3))):
        copy({"text": ["rain"]})
    assert loaded == [small_run]


def test_another_model_in_the_folder_is_refused(small_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(small_run / "model", folder)
    predictor = Predictor(folder)
    assert predictor.digest == Predictor(small_run).digest
    # The same model with another temperature.
    model = model_files.load_model(folder)
    object.__setattr__(model, "temperature", model.temperature * 2)
    model_files.save_model(model, folder)
    assert Predictor(folder).digest != predictor.digest
    with pytest.raises(InputError, match="holds another model or other decisions than at"):
        predictor({"text": ["rain"]})
    with pytest.raises(InputError, match="is not a model of newfound"):
        Predictor(tmp_path / "none")


def test_decisions_in_force_are_part_of_the_digest(small_run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(small_run, tmp_path / "run"))
    predictor = Predictor(folder)
    append(folder, [Decision("note", text="seen")])
    assert Predictor(folder).digest == predictor.digest
    append(folder, [Decision("rename", category="c1", name="A new name")])
    assert Predictor(folder).digest != predictor.digest
    with pytest.raises(InputError, match="other decisions than at the beginning"):
        predictor({"text": ["rain"]})
    append(folder, [Decision("undo", line=2)])
    assert Predictor(folder).digest == predictor.digest


def test_a_model_of_an_earlier_version_has_a_digest(small_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(small_run / "model", folder)
    (folder / "manifest.json").unlink()
    before = Predictor(folder).digest
    (folder / "prototypes.safetensors").write_bytes(b"other")
    assert Predictor(folder).digest != before


def test_the_schema_of_spark_names_every_column(small_run: Path) -> None:
    predictor = Predictor(small_run, text_column=["text", "my`text"])
    schema = predictor.spark_schema
    assert schema.startswith("`id` string, `text` string, `category` string")
    assert "`probability` double" in schema
    assert "`my``text` string" in schema


@pytest.mark.parametrize("size", [1, 2, 3, 7, 30])
def test_answers_do_not_depend_on_the_other_texts_of_a_batch(
    small_run: Path, task: SmallTask, size: int
) -> None:
    predictor = Predictor(small_run, device="cpu")
    texts = [*task.texts, "rain", "my", "", "please help me now the card"]
    together = predictor({"text": texts})
    parts = [predictor({"text": texts[i : i + size]}) for i in range(0, len(texts), size)]
    for name, values in together.items():
        assert [value for part in parts for value in part[name]] == values, name
