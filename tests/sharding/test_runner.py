"""`newfound predict --engine local`: a folder of predictions, faults, resuming, the manifest."""

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.commands import Command, Refuse
from support.shards import check_counts, contents, manifest, put_shards

from newfound.decisions import Decision, append
from newfound.sharding import folder as folders
from newfound.sharding import work
from newfound.storage import model_files


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    return put_shards(tmp_path / "shards", 3, 10)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def arguments(small_run: Path, shards: list[Path], out: Path) -> list[str | Path]:
    pattern = shards[0].parent / "*.parquet"
    return ["predict", small_run, pattern, "-o", out, "--engine", "local"]


def identities(out: Path) -> dict[str, tuple[int, int]]:
    """Return what changes when an output is written again, by name."""
    found = {path.name: path.stat() for path in out.glob("*.parquet")}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in found.items()}


def test_each_shard_has_the_answers_of_the_command_without_engine(
    command: Command, small_run: Path, arguments: list[Any], shards: list[Path], out: Path
) -> None:
    done = command(*arguments)
    assert done.code == 0, done.err
    assert done.out == f"33 texts in 3 shards: {out}\n"
    check_counts(out, shards)
    for path in shards:
        single = out.parent / "single.parquet"
        assert command("predict", small_run, path, "-o", single, "--force").code == 0
        assert contents(out)[path.name] == contents(out.parent)["single.parquet"]
    recorded = manifest(out)
    for name, entry in recorded["shards"].items():
        assert entry["sha256"] == hashlib.sha256((out / name).read_bytes()).hexdigest()
    assert recorded["model"]["folder"] == str(small_run)
    assert len(recorded["model"]["sha256"]) == 64


def test_finished_shards_are_not_predicted_again(
    command: Command, arguments: list[Any], shards: list[Path], out: Path
) -> None:
    assert command(*arguments).code == 0
    before = identities(out)
    done = command(*arguments)
    assert done.out == f"33 texts in 3 shards; 3 shards were finished before: {out}\n"
    assert identities(out) == before
    # A new shard, a changed one and a lost output are predicted; the rest stays.
    put_shards(shards[0].parent / "more", 1, 5)[0].rename(shards[0].parent / "part-100.parquet")
    table = pd.read_parquet(shards[1])
    table.to_parquet(shards[1])
    os.utime(shards[1], ns=(0, 0))
    (out / shards[2].name).unlink()
    shutil.rmtree(shards[0].parent / "more")
    done = command(*arguments)
    assert done.out == f"38 texts in 4 shards; 1 shard was finished before: {out}\n"
    after = identities(out)
    assert after[shards[0].name] == before[shards[0].name]
    assert after[shards[1].name] != before[shards[1].name]
    check_counts(out, sorted(shards[0].parent.glob("*.parquet")))


@pytest.mark.parametrize("moment", ["predicting", "before the receipt", "before the rename"])
@pytest.mark.parametrize("fault", [KeyboardInterrupt, MemoryError])
def test_a_fault_at_any_moment_costs_one_shard(
    command: Command,
    arguments: list[Any],
    shards: list[Path],
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    fault: type[BaseException],
) -> None:
    with monkeypatch.context() as patch:
        if moment == "predicting":
            plain = work.ShardWork._write

            def failing(self: Any, shard: Any, *rest: Any) -> Any:
                found = plain(self, shard, *rest)
                if shard.output == shards[1].name:
                    raise fault
                return found

            patch.setattr(work.ShardWork, "_write", failing)
        else:
            write = folders.write_receipt

            def failing_receipt(folder: Path, shard: Any, receipt: Any) -> None:
                if shard.output == shards[1].name and moment == "before the receipt":
                    raise fault
                write(folder, shard, receipt)
                if shard.output == shards[1].name:
                    raise fault

            patch.setattr(work, "write_receipt", failing_receipt)
        if fault is KeyboardInterrupt:
            done = command(*arguments)
            assert done.code == 130
            assert "interrupted; the same command goes on with what is missing" in done.err
        else:
            with pytest.raises(MemoryError):
                command(*arguments)
    before = identities(out)
    assert list(before) == [shards[0].name]
    recorded = manifest(out)
    assert recorded["complete"] is False
    assert list(recorded["shards"]) == [shards[0].name]
    done = command(*arguments)
    assert done.out == f"33 texts in 3 shards; 1 shard was finished before: {out}\n"
    assert identities(out)[shards[0].name] == before[shards[0].name]
    check_counts(out, shards)


def test_receipts_of_a_killed_command_count(
    command: Command, arguments: list[Any], shards: list[Path], out: Path
) -> None:
    assert command(*arguments).code == 0
    # As a killed command leaves it: a manifest without entries, and receipts. One receipt is
    # damaged, and of one shard the file was not renamed yet.
    value = manifest(out)
    (out / "receipts").mkdir()
    for name, entry in value["shards"].items():
        (out / "receipts" / f"{name}.json").write_text(json.dumps(entry))
    (out / "manifest.json").write_text(json.dumps({**value, "shards": {}}))
    (out / "receipts" / f"{shards[1].name}.json").write_text("{")
    (out / shards[2].name).unlink()
    before = identities(out)
    done = command(*arguments)
    assert done.out == f"33 texts in 3 shards; 1 shard was finished before: {out}\n"
    assert identities(out)[shards[0].name] == before[shards[0].name]
    check_counts(out, shards)


def test_a_shard_that_cannot_be_read_does_not_stop_the_others(
    command: Command, arguments: list[Any], shards: list[Path], out: Path
) -> None:
    content = shards[1].read_bytes()
    shards[1].write_bytes(b"PAR1 nonsense")
    done = command(*arguments)
    assert done.code == 1
    assert done.out == f"22 texts in 3 shards; 1 shard failed: {out}\n"
    assert f"{shards[1]} cannot be predicted: " in done.err
    recorded = manifest(out)
    assert recorded["complete"] is False
    assert recorded["failed"][shards[1].name]["source"] == str(shards[1])
    assert not (out / shards[1].name).exists()
    shards[1].write_bytes(content)
    assert command(*arguments).code == 0
    check_counts(out, shards)


def test_two_models_are_not_mixed(
    command: Command, refuse: Refuse, small_run: Path, arguments: list[Any], out: Path
) -> None:
    assert command(*arguments).code == 0
    model = model_files.load_model(small_run)
    object.__setattr__(model, "temperature", model.temperature * 2)
    model_files.save_model(model, out.parent / "other")
    other = [arguments[0], out.parent / "other", *arguments[2:]]
    assert "holds predictions of another model" in refuse(*other)
    assert "with outside=None, not outside=0.1" in refuse(*arguments, "--outside", "0.1")
    assert command(*other, "--force").code == 0
    assert manifest(out)["model"]["folder"] == str(out.parent / "other")
    assert "holds predictions of another model" in refuse(*arguments)


def test_answers_before_and_after_a_decision_are_not_mixed(
    command: Command, refuse: Refuse, small_run: Path, arguments: list[Any], out: Path
) -> None:
    run = Path(shutil.copytree(small_run, out.parent / "run"))
    given = [arguments[0], run, *arguments[2:]]
    assert command(*given).code == 0
    append(run, [Decision("rename", category="c1", name="A new name")])
    assert "or of the model before other decisions" in refuse(*given)
    assert command(*given, "--force").code == 0
    names = {row["category"] for rows in contents(out).values() for row in rows}
    assert "A new name" in names
    append(run, [Decision("note", text="seen")])
    assert "3 shards were finished before" in command(*given).out


def test_force_deletes_predictions_and_nothing_else(
    command: Command, arguments: list[Any], shards: list[Path], out: Path
) -> None:
    assert command(*arguments).code == 0
    (out / "mine.txt").write_text("mine")
    shards[2].unlink()
    assert command(*arguments, "--force").code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "manifest.json", "mine.txt", "part-000.parquet", "part-001.parquet",
    ]  # fmt: skip


def test_folders_of_others_are_refused(
    refuse: Refuse, small_run: Path, arguments: list[Any], shards: list[Path], out: Path
) -> None:
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    assert "holds no predictions of newfound" in refuse(*arguments)
    assert "holds no predictions of newfound" in refuse(*arguments, "--force")
    (out / "manifest.json").write_text('{"format": 1, "sha256": {}}')
    assert "manifest.json is damaged" in refuse(*arguments)
    file = out / "mine.txt"
    assert "is a file" in refuse(*arguments[:4], file, *arguments[5:])
    tables = shards[0].parent
    assert "holds the tables themselves" in refuse(*arguments[:4], tables, *arguments[5:])
    assert (out / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("flags", [[], ["--force"]])
def test_files_of_others_are_not_replaced(
    command: Command,
    refuse: Refuse,
    arguments: list[Any],
    shards: list[Path],
    out: Path,
    finished: bool,
    flags: list[str],
) -> None:
    late = shards[1].rename(shards[1].with_suffix(".later"))
    assert command(*arguments).code == 0
    (out / shards[1].name).write_text("mine")
    if not finished:
        (out / shards[0].name).unlink()
    late.rename(shards[1])
    message = refuse(*arguments, *flags)
    assert f"{out / shards[1].name} is no prediction that newfound recorded" in message
    assert (out / shards[1].name).read_text() == "mine"
    assert (out / shards[2].name).exists()
    (out / shards[1].name).unlink()
    assert command(*arguments, *flags).code == 0
    check_counts(out, shards)


def test_a_changed_prediction_is_written_again(
    command: Command, arguments: list[Any], shards: list[Path], out: Path
) -> None:
    assert command(*arguments).code == 0
    before, changed = identities(out), out / shards[1].name
    content = changed.read_bytes()
    changed.write_bytes(bytes(len(content)))
    done = command(*arguments)
    assert done.out == f"33 texts in 3 shards; 2 shards were finished before: {out}\n"
    assert changed.read_bytes() == content
    assert identities(out)[shards[0].name] == before[shards[0].name]
    check_counts(out, shards)


def test_a_folder_of_texts_is_predicted_again_if_a_text_has_changed(
    command: Command, small_run: Path, tmp_path: Path, out: Path
) -> None:
    texts = tmp_path / "texts"
    (texts / "deep").mkdir(parents=True)
    (texts / "a.txt").write_text("rain")
    (texts / "deep" / "b.txt").write_text("sun")
    words = ["predict", small_run, texts, "-o", out, "--engine", "local"]
    assert command(*words).code == 0
    assert "1 shard was finished before" in command(*words).out
    (texts / "deep" / "b.txt").write_text("day")
    assert "finished before" not in command(*words).out
    assert [row["text"] for row in contents(out)["texts.parquet"]] == ["rain", "day"]
    (texts / "a.txt").unlink()
    assert "finished before" not in command(*words).out
    assert "1 shard was finished before" in command(*words).out


def test_a_damaged_manifest_is_not_replaced(
    command: Command, refuse: Refuse, arguments: list[Any], out: Path
) -> None:
    assert command(*arguments).code == 0
    for content in ("{", '{"format": 1, "shards": []}'):
        (out / "manifest.json").write_text(content)
        for flags in ([], ["--force"]):
            message = refuse(*arguments, *flags)
            assert "manifest.json is damaged" in message
            assert "delete this one if you need nothing in it" in message
            assert "--force" not in message
    shutil.rmtree(out)
    assert command(*arguments).code == 0


def test_only_one_command_writes_a_folder(refuse: Refuse, arguments: list[Any], out: Path) -> None:
    with folders.open_shard_folder(out, {"model": {"sha256": "x"}, "options": {}}):
        assert "another process is writing" in refuse(*arguments)


def test_a_link_to_a_folder_is_that_folder(
    command: Command, refuse: Refuse, arguments: list[Any], shards: list[Path], out: Path
) -> None:
    link = out.with_name("link")
    link.symlink_to(out)
    words = [link if word == out else word for word in arguments]
    assert command(*words).code == 0  # the link led nowhere before
    check_counts(out, shards)
    with folders.open_shard_folder(out, manifest(out)):
        assert "another process is writing" in refuse(*words)
    link.unlink()
    link.symlink_to(link)
    assert "cannot write" in refuse(*words)


def test_without_a_rule_nothing_is_said_about_texts_that_fit_nowhere(
    command: Command, arguments: list[Any], shards: list[Path], out: Path
) -> None:
    for path in shards:
        path.write_bytes(b"PAR1 nonsense")
    done = command(*arguments)
    assert done.out == f"0 texts in 3 shards; 3 shards failed: {out}\n"
    assert manifest(out)["fits_nowhere"] is None
    put_shards(shards[0].parent, 3, 10)
    done = command(*arguments, "--force", "--outside", "0.5")
    assert " fit nowhere: " in done.out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--engine", "local", "--workers", "2", "-o", "o"], "--workers is for --engine ray"),
        (["--workers", "2", "-o", "o.csv"], "--workers is for --engine ray"),
        (["--engine", "ray", "--workers", "0", "-o", "o"], "--workers must be at least 1"),
        (["--engine", "ray"], "name the folder to write with -o OUT"),
        (["--engine", "ray", "-o", "o", "--vectors", "v.npy"], "name it with --vector-column"),
        (["-", "--engine", "ray", "-o", "o"], "reads tables, not standard input"),
    ],
)
def test_flags_that_do_not_fit_are_refused(
    refuse: Refuse, small_run: Path, shards: list[Path], flags: list[str], message: str
) -> None:
    assert message in refuse("predict", small_run, shards[0], *flags)


def test_a_missing_extra_is_named(
    refuse: Refuse, arguments: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "install newfound with the extra ray" in refuse(*arguments[:-1], "ray")


def test_notes_are_printed_once_and_not_by_the_hundred(
    command: Command, small_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for number in range(8):
        (tmp_path / "in" / f"{number}.csv").write_text("body\nrain\n")
    flags = ["-o", tmp_path / "out", "--engine", "local"]
    done = command("predict", small_run, tmp_path / "in" / "*.csv", *flags)
    assert done.code == 0
    assert done.err.count("note: ") == 6
    assert f"3 more notes are in {tmp_path / 'out' / 'manifest.json'}" in done.err
