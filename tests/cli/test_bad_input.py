"""What bad input gets from the command: one sentence, exit code 2, and nothing left behind."""

import errno
import gzip
import json
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.commands import Refuse
from support.sealing import reseal
from support.small_texts import SmallTask, everything_under

from newfound import CategoryDiscoverer
from newfound.cli.main import main
from newfound.data.tables import textfile


@pytest.fixture
def table(task: SmallTask, tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(task.csv())
    return path


# Tables.


TABLES: list[tuple[str, str, bytes, str]] = [
    ("empty", "t.csv", b"", "the file is empty"),
    ("header only", "t.csv", b"text,label\n", "there is a header but no row"),
    ("header only, jsonl", "t.jsonl", b"\n", "t.jsonl"),
    ("binary", "t.csv", b"text\n" + bytes(range(256)) * 8, "t.csv"),
    ("neither encoding", "t.csv", b"text\nab\x81\x8d\n", "line 2 is neither UTF-8"),
    ("workbook", "t.csv", b"PK\x03\x04....", "Excel workbook"),
    ("other format", "t.xls", b"x", "'.xls' is not a table format"),
    ("no ending", "table", b"text\na\n", "the name has no extension"),
    ("no text column", "t.csv", b"number,when\n1,2\n3,4\n", "the text column is not clear"),
    ("two text columns", "t.csv", b"title,body\na,b\nc,d\n", "may be 'title' or 'body'"),
    ("two label columns", "t.csv", b"text,topic,intent\na,b,c\n", "label column may be"),
    ("comma in a text", "t.csv", b"text,label\na,b,c\n", "row 1 (line 2): there are 3 fields"),
    ("open quote", "t.csv", b'text,label\n"a,b\nc,d\n', "a quote is misplaced"),
    ("broken json", "t.jsonl", b'{"text": "a"}\n{"text": \n', "line 2"),
    ("json text is a list", "t.jsonl", b'{"text": ["a"]}\n', "row 1, column 'text'"),
    ("not parquet", "t.parquet", b"PAR1 and nothing", "t.parquet"),
    ("damaged gzip", "t.csv.gz", gzip.compress(b"text\na\nb\n")[:-9], "compressed file is damaged"),
    ("no text in any row", "t.csv", b"text,label\n ,a\n,b\n", "there is no text in column 'text'"),
    ("one text", "t.csv", b"text\nonly this\n", "there is only one text"),
    ("one text, twice", "t.csv", b"text\nsame\nsame\n", "all 2 texts are the same"),
    ("more labels than texts", "t.csv", b"text,label\na,x\na,y\nb,z\n", "3 labels but only 2"),
]


@pytest.mark.parametrize(
    ("name", "content", "message"), [row[1:] for row in TABLES], ids=[r[0] for r in TABLES]
)
@pytest.mark.parametrize("reader", ["discover", "estimate"])
def test_invalid_tables_are_errors(
    refuse: Refuse,
    tmp_path: Path,
    flags: list[str],
    reader: str,
    name: str,
    content: bytes,
    message: str,
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    out = ["-o", tmp_path / "run"] if reader == "discover" else []
    flags = flags if reader == "discover" else flags[:2]
    said = refuse(reader, path, *out, *flags)
    assert message in said
    about_all_tables = ("only one text", "are the same", "3 labels")
    assert str(path) in said or any(part in said for part in about_all_tables)


def test_missing_repeated_and_folder_tables_are_errors(
    refuse: Refuse, tmp_path: Path, table: Path
) -> None:
    out = ["-o", tmp_path / "run"]
    assert f"{tmp_path / 'gone.csv'}: there is no such file" in refuse(
        "discover", tmp_path / "gone.csv", *out
    )
    assert f"{tmp_path}: this is a folder" in refuse("discover", tmp_path, *out)
    assert "the file is given twice" in refuse("discover", table, table, *out)
    assert "there is no such file" in refuse("discover", table, tmp_path / "gone.csv", *out)


def test_unreadable_table_is_an_error(
    refuse: Refuse, tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: Path) -> Any:  # permissions do not bind everybody who runs tests
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(textfile, "_open_binary", denied)
    said = refuse("discover", table, "-o", tmp_path / "run")
    assert f"{table}: there is no permission to read the file" in said


@pytest.mark.parametrize("role", ["text", "label", "id"])
def test_missing_column_is_an_error(refuse: Refuse, tmp_path: Path, table: Path, role: str) -> None:
    said = refuse("discover", table, "-o", tmp_path / "run", f"--{role}-column", "words")
    assert f"{table}: there is no column 'words': name one of 'text', 'label'" in said
    assert f"--{role}-column" in said


def test_duplicate_ids_in_a_named_column_are_an_error(refuse: Refuse, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,text\n1,a\n1,b\n")
    said = refuse("discover", path, "-o", tmp_path / "run", "--id-column", "id")
    assert f"{path}, row 1 and {path}, row 2: both have the id '1'" in said


# Tables that look bad and are worked on nonetheless.


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_discover_accepts_unusual_texts(
    task: SmallTask,
    flags: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    ending: str,
) -> None:
    odd = [
        "",
        "   ",
        None,
        "42",
        "3.5",
        "x" * 100_000,
        "rain " * 20_000,
        "nul \0 byte",
        "\U0001f600 \U0001f1e9\U0001f1ea emoji",
        "\u05e9\u05dc\u05d5\u05dd \u0634\u0643\u0631\u0627",
        'quotes " and, commas\nand lines',
        "None",
    ]
    rows = [
        {"text": text, "label": label}
        for text, label in zip(
            [*task.texts, *odd, task.texts[0]],
            [*task.labels, *[None] * len(odd), "another"],
            strict=True,
        )
    ]
    path = tmp_path / f"t.{ending}"
    if ending == "csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    elif ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pd.DataFrame(rows).to_parquet(path)
    out = tmp_path / "run"
    code = main(["discover", str(path), "-o", str(out), "--categories", "6", *flags])
    err = capsys.readouterr().err
    assert code == 0, err
    assert "3 rows have no text in column 'text' (first: row 65): skipped" in err
    assert "1 text in column 'text' contains NUL or invalid characters" in err
    assert all(line.startswith("note: ") for line in err.splitlines())
    read = pd.read_csv(out / "assignments.csv", dtype=str, keep_default_na=False)
    kept = [text for text in odd if text and text.strip()]
    assert read["text"].tolist()[64:-1] == [text.replace("\0", " ") for text in kept]
    assert read["category"].tolist()[-1] == "another"
    answer = tmp_path / "answer.jsonl"
    assert main(["predict", str(out), str(path), "-o", str(answer)]) == 0
    said = [json.loads(line) for line in answer.read_text(encoding="utf-8").splitlines()]
    assert len(said) == len(rows)
    predicted = dict(zip(read["id"], read["predicted"], strict=True))
    for row in said:
        assert row["category"] == predicted.get(row["id"])  # None where the text was left out


def test_windows_1252_is_read_with_a_note(
    flags: list[str], tmp_path: Path, task: SmallTask, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes((task.csv() + "caf\u00e9 \u20ac,\n").encode("cp1252"))
    code = main(["discover", str(path), "-o", str(tmp_path / "run"), "--categories", "4", *flags])
    assert code == 0
    assert "not UTF-8 (line 66): read as Windows-1252" in capsys.readouterr().err
    read = pd.read_csv(tmp_path / "run" / "assignments.csv")
    assert read["text"].tolist()[-1] == "caf\u00e9 \u20ac"


def test_other_delimiters_are_read_with_a_note(
    flags: list[str], tmp_path: Path, task: SmallTask, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(task.csv().replace(",", ";"))
    code = main(["discover", str(path), "-o", str(tmp_path / "run"), "--categories", "4", *flags])
    assert code == 0
    assert "separated by a semicolon" in capsys.readouterr().err


# Choices.


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (["--categories", "1"], "1 category is asked for (--categories, n_categories) but 2"),
        (["--categories", "65"], "but there are only 64 different texts: give at most 64"),
        (["--categories", "many"], "--categories must be auto or a whole number, not 'many'"),
        (["--categories", "4.5"], "--categories must be auto or a whole number, not '4.5'"),
        (["--categories", "0"], "--categories must be at least 1, not 0"),
        (["--categories", "-2"], "--categories must be at least 1, not -2"),
        (["--categories", ""], "--categories must be auto or a whole number, not ''"),
        (["--method", "magic"], "the method 'magic' is unknown; choose one of "),
        (["--encoder", "/no/such/encoder"], "the encoder folder /no/such/encoder does not exist"),
        (["--device", "gpu"], "the device 'gpu' is unknown; choose cpu, cuda or cuda:N"),
        (["--device", "mps"], "the device 'mps' is not supported; choose cpu, cuda or cuda:N"),
        (["--device", "cuda:77"], "cuda"),
        (["--effort", "huge"], "--effort must be fast or balanced or best, not 'huge'"),
        (["--seed", "x"], "--seed must be a whole number, not 'x'"),
        (["--seed", "-1"], "--seed must be from 0 to 4294967295, not -1"),
        (["--seed", "9" * 30], "--seed must be from 0 to 4294967295"),
        (["--pooling", "max"], "--pooling must be cls or mean, not 'max'"),
        (["--max-tokens", "1"], "--max-tokens must be at least 3, not 1"),
        (["--validation-share", "1.5"], "--validation-share must be from 0 to 0.9, not 1.5"),
        (["--validation-share", "nan"], "--validation-share must be from 0 to 0.9, not nan"),
        (["--cache", "/dev/null/x"], "cannot create the cache folder /dev/null/x"),
        (["--set", "epochs"], "--set takes NAME=VALUE (such as epochs=3), not 'epochs'"),
        (["--set", "=3"], "--set takes NAME=VALUE"),
        (["--set", "speed=3"], "method dpn has no setting 'speed'; it has "),
        (["--set", "epochs=few"], "method dpn: epochs must be a whole number, not 'few'"),
        (["--set", "epochs=-1"], "method dpn: epochs must be at least 0, not -1"),
        (["--set", "temperature=nan"], "method dpn: temperature must be at least 0"),
        (["--set", "trainable_layers=-1"], "trainable_layers must be at least 0, not -1"),
        (["--set", "head=hat"], "head must be none or tanh or residual or small-residual"),
        (["--validation", "gone.csv"], "gone.csv: there is no such file"),
        (["--format", "xml"], "argument --format: invalid choice: 'xml'"),
        (["--speed", "9"], "unrecognized arguments: --speed 9"),
        (["--categories"], "argument --categories: expected one argument"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_invalid_options_are_errors(
    refuse: Refuse,
    tmp_path: Path,
    table: Path,
    flags: list[str],
    chosen: list[str],
    message: str,
) -> None:
    assert message in refuse("discover", table, "-o", tmp_path / "run", *flags, *chosen)


def test_unknown_encoder_is_an_error(
    refuse: Refuse, tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for name in ("no-such-encoder-anywhere", "somebody/no-such-encoder", "what is this?"):
        said = refuse("discover", table, "-o", tmp_path / "run", "--encoder", name)
        assert f"the encoder {name!r} is not a folder and could not be downloaded" in said


def test_folder_without_an_encoder_is_an_error(refuse: Refuse, tmp_path: Path, table: Path) -> None:
    said = refuse("discover", table, "-o", tmp_path / "run", "--encoder", tmp_path)
    assert f"config.json is missing: {tmp_path} is not the folder of an encoder" in said


def test_more_novel_categories_than_unlabelled_texts_is_an_error(
    refuse: Refuse, tmp_path: Path, task: SmallTask, flags: list[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(SmallTask(task.texts, list(task.truth), task.truth).csv())
    said = refuse("discover", path, "-o", tmp_path / "run", "--categories", "9", *flags)
    assert "only 0 texts have no label; give at most 4" in said


def test_estimate_reports_the_same_errors_as_discover(
    refuse: Refuse, table: Path, tiny_encoder: str
) -> None:
    shared = ["estimate", table, "--encoder", tiny_encoder]
    assert "--seed must be" in refuse(*shared, "--seed", "x")
    assert "the device 'gpu' is unknown" in refuse(*shared, "--device", "gpu")
    assert "--max-tokens must be at least 3" in refuse(*shared, "--max-tokens", "1")
    assert "the method 'magic' is unknown" in refuse(*shared, "--method", "magic")
    assert "has no setting 'magic'" in refuse(*shared, "--set", "magic=1")
    for flag in ("--categories", "--validation-share"):  # of no use to count
        assert f"unrecognized arguments: {flag}" in refuse(*shared, flag, "3")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "invalid choice: 'fly'"),
        (["discover"], "the following arguments are required: TABLE, -o/--out"),
        (["discover", "t.csv"], "the following arguments are required: -o/--out"),
        (["predict", "run"], "the following arguments are required: TABLE"),
        (["info"], "the following arguments are required: RUN"),
        (["methods", "magic"], "the method 'magic' is unknown"),
    ],
)
def test_invalid_command_lines_are_errors(
    refuse: Refuse, arguments: list[str], message: str
) -> None:
    said = refuse(*arguments)
    assert message in said
    if arguments[0] in ("discover", "predict", "info"):
        assert said.endswith(f"see `newfound {arguments[0]} --help`")


# Folders that must stay.


def test_existing_run_is_kept_without_force(
    refuse: Refuse, tmp_path: Path, table: Path, small_run: Path
) -> None:
    run = shutil.copytree(small_run, tmp_path / "run")
    said = refuse("discover", table, "-o", run)
    assert said == f"the run {run} exists; replace it with --force or choose another name"


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_other_folders_are_kept_even_with_force(
    refuse: Refuse, tmp_path: Path, table: Path, force: list[str]
) -> None:
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter.txt").write_text("years of work")
    said = refuse("discover", table, "-o", folder, *force)
    assert said.startswith(f"{folder} exists and is not a run folder, so it is not replaced")
    assert "not a run folder" in refuse("demo", "-o", folder)
    assert "is a file; give a folder" in refuse("discover", table, "-o", table, *force)
    assert "cannot write" in refuse("discover", table, "-o", table / "run", *force)


def test_failed_discover_with_force_keeps_the_old_run(
    refuse: Refuse, tmp_path: Path, table: Path, small_run: Path, flags: list[str]
) -> None:
    run = shutil.copytree(small_run, tmp_path / "run")
    refuse("discover", table, "-o", run, "--force", *flags, "--encoder", "/no/such/encoder")


# Runs that cannot be used.


COMMANDS_ON_RUNS = [
    ["predict", "RUN", "-"],
    ["info", "RUN"],
    ["report", "RUN"],
    ["export", "RUN", "--to", "csv", "-o", "OUT"],
]


def on_run(words: list[str], run: Path, tmp_path: Path) -> list[str]:
    names = {"RUN": str(run), "OUT": str(tmp_path / "out.csv")}
    return [names.get(word, word) for word in words]


@pytest.mark.parametrize("words", COMMANDS_ON_RUNS, ids=lambda words: words[0])
def test_commands_report_folders_that_are_not_runs(
    refuse: Refuse, tmp_path: Path, words: list[str]
) -> None:
    foreign = tmp_path / "foreign"
    (foreign / "model").mkdir(parents=True)
    (foreign / "run.json").write_text('{"name": "of another program"}')
    (foreign / "model" / "model.json").write_text('{"layers": 12}')
    empty = tmp_path / "empty"
    empty.mkdir()
    for run in (tmp_path / "gone", empty, foreign):
        assert str(run) in refuse(*on_run(words, run, tmp_path))


@pytest.mark.parametrize("words", COMMANDS_ON_RUNS, ids=lambda words: words[0])
def test_runs_of_a_newer_format_are_errors(
    refuse: Refuse, tmp_path: Path, small_run: Path, words: list[str]
) -> None:
    run = shutil.copytree(small_run, tmp_path / "run")
    for path in (run / "run.json", run / "model" / "model.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    reseal(run)
    said = refuse(*on_run(words, run, tmp_path))
    assert "format 99" in said
    assert str(run) in said


@pytest.mark.parametrize("words", COMMANDS_ON_RUNS, ids=lambda words: words[0])
@pytest.mark.parametrize("damage", ["half", "list", "no entries"])
def test_damaged_runs_are_errors(
    refuse: Refuse, tmp_path: Path, small_run: Path, words: list[str], damage: str
) -> None:
    run = shutil.copytree(small_run, tmp_path / "run")
    for path in (run / "run.json", run / "categories.json", run / "model" / "model.json"):
        text = path.read_text()
        path.write_text(
            {"half": text[: len(text) // 2], "list": "[7]", "no entries": '{"format": 1}'}[damage]
        )
    said = refuse(*on_run(words, run, tmp_path))
    assert str(run) in said


@pytest.mark.parametrize("name", ["categories.json", "run.json"])
def test_info_names_the_damaged_file(
    refuse: Refuse, tmp_path: Path, small_run: Path, name: str
) -> None:
    run = shutil.copytree(small_run, tmp_path / "run")
    whole = json.loads((run / name).read_text())
    for content in ('{"format": 1}', '{"format": 1, "categories": 5}', '[{"id": 0}]', "null"):
        (run / name).write_text(content)
        assert f"{run / name} is damaged" in refuse("info", run)
    if name == "run.json":
        for key in ("seconds", "settings", "notes", "texts"):
            (run / name).write_text(json.dumps({**whole, key: None}))
            if key != "texts":
                assert f"{run / name} is damaged" in refuse("info", run)


# predict


def test_predict_reports_invalid_input(
    refuse: Refuse, tmp_path: Path, table: Path, small_run: Path
) -> None:
    assert "name the table to write with -o OUT" in refuse("predict", small_run, table)
    out = tmp_path / "out.csv"
    assert "there is no such file" in refuse("predict", small_run, tmp_path / "no.csv", "-o", out)
    assert "gives no table format" in refuse("predict", small_run, table, "-o", tmp_path / "o.x")
    assert "this is a folder" in refuse("predict", small_run, tmp_path, "-o", out)
    said = refuse("predict", small_run, table, "-o", tmp_path / "no" / "out.csv")
    assert "cannot write" in said
    assert "the device 'gpu' is" in refuse(
        "predict", small_run, table, "-o", out, "--device", "gpu"
    )
    said = refuse("predict", small_run, table, "-o", out, "--text-column", "words")
    assert f"{table}: there is no column 'words'" in said
    (tmp_path / "folder.csv").mkdir()
    assert "folder" in refuse("predict", small_run, table, "-o", tmp_path / "folder.csv")
    out.write_text("mine")
    assert f"{out} exists; replace it with --force" in refuse(
        "predict", small_run, table, "-o", out
    )


def test_invalid_line_in_a_pipe_is_an_error(
    small_run: Path, tmp_path: Path, refuse: Refuse
) -> None:
    lines = 'rain\n{"text": ["a", "list"]}\n'
    said = refuse("predict", small_run, "-", "-o", tmp_path / "out.csv", stdin=lines)
    assert "standard input, line 2: 'text' is a list or an object" in said


# A disk that is full.


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """Writing past `size` bytes fails as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# Each limit lets some of the files be written; the largest is the encoder's weights.
@pytest.mark.parametrize("size", [0, 500, 4_000, 20_000, 60_000])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_full_disk_in_discover_leaves_no_files(
    refuse: Refuse, tmp_path: Path, table: Path, flags: list[str], size: int, ending: str
) -> None:
    out = tmp_path / "deep" / "run"
    with files_no_larger_than(size):
        said = refuse("discover", table, "-o", out, "--categories", "4", "--format", ending, *flags)
    assert f"{out}" in said
    assert re.search(r"cannot (be )?writ", said)
    assert "free space or choose another place" in said
    assert "/." not in said  # no temporary name


def test_model_files_exceed_the_limits_of_the_disk_tests(small_run: Path) -> None:
    assert (small_run / "model" / "encoder.safetensors").stat().st_size > 60_000


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_full_disk_in_predict_leaves_no_files(
    refuse: Refuse, tmp_path: Path, small_run: Path, ending: str
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("text\n" + "".join(f"rain {i}\n" for i in range(500)))
    with files_no_larger_than(300):
        said = refuse("predict", small_run, table, "-o", tmp_path / f"out.{ending}")
    assert f"out.{ending}" in said
    assert "free space or choose another place" in said


def test_full_disk_in_discover_keeps_the_old_run(
    refuse: Refuse, tmp_path: Path, table: Path, flags: list[str], small_run: Path
) -> None:
    run = shutil.copytree(small_run, tmp_path / "run")
    with files_no_larger_than(20_000):
        refuse("discover", table, "-o", run, "--force", *flags)


def test_full_disk_in_save_is_an_input_error(small_run: Path, tmp_path: Path) -> None:
    from newfound import InputError

    model = CategoryDiscoverer.load(small_run)
    with files_no_larger_than(20_000), pytest.raises(InputError, match="cannot write"):
        model.save(tmp_path / "model")
    assert everything_under(tmp_path) == set()


def test_full_disk_at_standard_output_is_an_error(small_run: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "newfound", "predict", str(small_run), "-"],
            input=b"rain\n" * 10,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == ["newfound: No space left on device"]


# The same from a shell: no traceback in another process either.


def test_errors_in_a_subprocess_exit_with_code_2(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "newfound", "discover", "gone.csv", "-o", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "newfound: gone.csv: there is no such file: check the path\n"
    assert everything_under(tmp_path) == set()
