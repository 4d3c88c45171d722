"""Folders and patterns: datasets of the Hugging Face library, folders of texts, several files."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pytest
from support.table_files import refused

from newfound import InputError
from newfound.data.tables import TableChunk, read_tables, stream_table

# Datasets of the Hugging Face library.


def save_dataset(folder: Path, features: dict[str, Any], *shards: pa.Table) -> Path:
    """Write what Dataset.save_to_disk writes."""
    folder.mkdir(parents=True)
    names = [f"data-{i:05}-of-{len(shards):05}.arrow" for i in range(len(shards))]
    for name, shard in zip(names, shards, strict=True):
        with (
            pa.OSFile(str(folder / name), "wb") as file,
            pa.ipc.new_stream(file, shard.schema) as w,
        ):
            w.write_table(shard, max_chunksize=2)
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "0"}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    return folder


FEATURES = {
    "text": {"dtype": "string", "_type": "Value"},
    "label": {"names": ["card", "bill"], "_type": "ClassLabel"},
}
ONE = pa.table({"text": ["a", "b", "c"], "label": pa.array([1, 0, -1], pa.int64())})
TWO = pa.table({"text": ["d", None], "label": pa.array([None, 1], pa.int64())})


def test_dataset_is_read_with_the_names_of_its_categories(tmp_path: Path) -> None:
    folder = save_dataset(tmp_path / "data", FEATURES, ONE, TWO)
    read = read_tables([folder])
    assert read.corpus.texts == ["a", "b", "c", "d"]
    assert read.corpus.labels == ["bill", "card", None, None]
    stream = stream_table(folder, chunk=3)
    assert stream.rows == 5
    assert [chunk.texts for chunk in stream] == [["a", "b", "c"], ["d", ""]]


def test_dataset_with_splits_is_refused_with_their_folders(tmp_path: Path) -> None:
    for split in ("train", "test"):
        save_dataset(tmp_path / "data" / split, FEATURES, ONE)
    (tmp_path / "data" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    message = refused(tmp_path / "data")
    assert f"give one or more of {tmp_path / 'data' / 'train'}, {tmp_path / 'data'}" in message
    assert len(read_tables([tmp_path / "data" / "train", tmp_path / "data" / "test"]).corpus) == 6


@pytest.mark.parametrize(
    "state",
    [
        "{",
        "[]",
        "{}",
        '{"_data_files": []}',
        '{"_data_files": [{"filename": "../data/x.arrow"}]}',
        '{"_data_files": ["x"]}',
        '{"_data_files": [{"filename": "gone.arrow"}]}',
        '{"_data_files": [{"filename": "x.arrow"}], "_indices_files": [{"filename": "y"}]}',
    ],
)
def test_damaged_dataset_is_refused(tmp_path: Path, state: str) -> None:
    folder = save_dataset(tmp_path / "data", FEATURES, ONE)
    (folder / "state.json").write_text(state)
    refused(folder)


def test_damaged_arrow_file_is_refused(tmp_path: Path, put: Any) -> None:
    folder = save_dataset(tmp_path / "data", FEATURES, ONE)
    file = folder / "data-00000-of-00001.arrow"
    content = file.read_bytes()
    for damaged in (b"not arrow", content[: len(content) // 2], bytes(200)):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match="not an Arrow file, or it is damaged"):
            read_tables([folder])


def test_arrow_files_are_read_in_both_formats(tmp_path: Path) -> None:
    folder = save_dataset(tmp_path / "data", FEATURES, ONE)
    assert read_tables([folder / "data-00000-of-00001.arrow"]).corpus.labels == ["1", "0", "-1"]
    pa.feather.write_feather(ONE, str(tmp_path / "t.feather"))
    assert read_tables([tmp_path / "t.feather"]).corpus.texts == ["a", "b", "c"]
    nested = pa.table({"text": [["a"], ["b"]]})
    pa.feather.write_feather(nested, str(tmp_path / "n.feather"))
    assert "column 'text': values of type list" in refused(tmp_path / "n.feather")


# Folders of texts.


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "tickets"
    for name, content in {
        "b.txt": b"second\ntext\n",
        "a.txt": b"first text",
        "card/c.TXT": "café".encode("cp1252"),
        "card/empty.txt": b"",
        "card/notes.md": b"no text",
        ".hidden/d.txt": b"hidden",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_folder_gives_one_text_per_file(texts: Path) -> None:
    read = read_tables([texts])
    assert read.corpus.texts == ["first text", "second\ntext", "café"]
    assert read.corpus.ids == ["a.txt", "b.txt", "card/c.TXT"]
    assert read.corpus.labels == [None, None, None]
    said = "\n".join(read.notes)
    assert "4 .txt files, one text each" in said
    assert "1 other file is not read" in said
    assert "add --label-column folder" in said
    assert "c.TXT: not UTF-8" in said
    assert "1 row has no text in column 'text' (first: row 4)" in said


def test_sub_folders_are_labels_if_the_user_says_so(texts: Path) -> None:
    assert read_tables([texts], label_column="folder").corpus.labels == [None, None, "card"]


def test_streamed_folder_keeps_file_names(texts: Path) -> None:
    (chunk,) = stream_table(texts)
    assert chunk.ids[-1] == "card/empty.txt"
    assert chunk.texts[-1] == ""


def test_folder_without_texts_is_refused(tmp_path: Path, put: Any) -> None:
    put("t.csv", "text\na\n")
    assert "folder without .txt files" in refused(tmp_path)
    put("t.txt", bytes(range(256)))
    with pytest.raises(InputError, match=r"t\.txt: line 2 is neither UTF-8 nor"):
        read_tables([tmp_path])


# Patterns.


def test_pattern_gives_all_files_in_order(put: Any, tmp_path: Path) -> None:
    for name in ("b", "a", "d", "c"):
        put(f"{name}.csv", f"text,label\n{name}1,x\n{name}2,\n")
    read = read_tables([tmp_path / "*.csv"])
    assert read.corpus.texts == ["a1", "a2", "b1", "b2", "c1", "c2", "d1", "d2"]
    (note,) = [note for note in read.notes if "guessed" in note]
    assert note.startswith(str(tmp_path / "a.csv"))
    assert note.endswith("(and in 3 more tables)")
    stream = stream_table(tmp_path / "*.csv", chunk=4)
    assert list(stream) == [
        TableChunk(["1", "2", "3", "4"], ["a1", "a2", "b1", "b2"], {"label": ["x", "", "x", ""]}),
        TableChunk(["5", "6", "7", "8"], ["c1", "c2", "d1", "d2"], {"label": ["x", "", "x", ""]}),
    ]


def test_pattern_without_files_is_refused(tmp_path: Path) -> None:
    assert "no file matches this pattern" in refused(tmp_path / "*.csv")


def test_name_with_brackets_is_a_file_if_there_is_one(put: Any) -> None:
    assert read_tables([put("t[1].csv", "text\na\n")]).corpus.texts == ["a"]


def test_row_numbers_replace_ids_unless_every_table_has_them(put: Any) -> None:
    one, two = put("a.csv", "id,text\nx,a\n"), put("b.csv", "text\nb\n")
    stream = stream_table(one, two)
    assert next(iter(stream)).ids == ["1", "2"]
    assert any("not every table has an id column" in note for note in stream.notes)
