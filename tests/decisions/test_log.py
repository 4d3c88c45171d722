"""decisions.jsonl: read line by line, appended under a lock, whole or not at all."""

import errno
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.decided import small_result
from support.sealing import unseal

from newfound import InputError
from newfound.decisions import (
    NAME,
    Decision,
    Part,
    Problem,
    StaleError,
    append,
    decision_from,
    read_decided,
    read_log,
)
from newfound.storage.run_folder import check_run_folder, new_run, read_run, write_run

ACCEPT = Decision("accept", category="c3", time="2026-01-02T03:04:05+00:00", author="Ada")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    write_run(small_result(), folder)
    return folder


def test_without_a_file_there_are_no_decisions(run: Path) -> None:
    assert read_log(run).entries == ()
    assert not (run / NAME).exists()


@pytest.mark.parametrize(
    "decision",
    [
        ACCEPT,
        Decision("accept", category="c3", texts=("1", "2")),
        Decision("reject", category="c3"),
        Decision("rename", category="c3", name="\u4f60 \xe9"),
        Decision("merge", categories=("c3", "c4"), into="c5"),
        Decision("split", category="c3", parts=(Part(("1",), "A"), Part(("2", "3")))),
        Decision("move", texts=("1",), into="c2"),
        Decision("nowhere", texts=("1", "2")),
        Decision("note", text="look again", category="c3"),
        Decision("undo", line=3),
        Decision("refit", run="run2"),
    ],
    ids=lambda decision: decision.action,
)
def test_written_decision_is_read_back(run: Path, decision: Decision) -> None:
    log = append(run, [decision])
    assert log.entries == (decision,)
    assert read_log(run) == log
    assert decision_from(json.loads((run / NAME).read_text(encoding="utf-8"))) == decision


def test_the_run_itself_stays_valid(run: Path) -> None:
    append(run, [ACCEPT])
    assert read_run(run).categories[2].status == "proposed"
    result, log, problems = read_decided(run)
    assert (result.categories[2].status, len(log.entries), problems) == ("accepted", 1, ())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "it is not JSON"),
        ("[1]", "it is not a JSON object"),
        ("{}", "'decision' must be one of accept, "),
        ('{"decision": "explode"}', "not 'explode'"),
        ('{"decision": "rename", "category": "c3"}', "rename needs 'name'"),
        ('{"decision": "accept", "category": "c3", "nmae": "x"}', "does not take 'nmae'"),
        ('{"decision": "accept", "category": 3}', "'category' must be a text"),
        ('{"decision": "move", "texts": [], "into": "c3"}', "'texts' must be a list of ids"),
        ('{"decision": "move", "texts": [1.5], "into": "c3"}', "cannot be 1.5"),
        ('{"decision": "split", "category": "c3", "parts": []}', "at least one"),
        ('{"decision": "split", "category": "c3", "parts": [{"texts": []}]}', "at least one"),
        ('{"decision": "split", "category": "c3", "parts": [["1"]]}', "must be an object"),
        ('{"decision": "rename", "category": "c3", "name": "\\u0007"}', "1 to 200 characters"),
        ('{"decision": "undo", "line": 0}', "the number of a line"),
        ("[" * 100_000, "it is not JSON"),
        ("\xff", "it is not JSON"),
    ],
)
def test_line_that_cannot_be_read_is_reported_with_its_number(
    run: Path, line: str, reason: str
) -> None:
    good = json.dumps(ACCEPT.to_dict())
    (run / NAME).write_bytes(f"{good}\n\n{line}\r\n{good}".encode("latin-1"))
    log = read_log(run)
    assert log.entries[:2] == (ACCEPT, None)
    assert log.entries[3] == ACCEPT
    problem = log.entries[2]
    assert isinstance(problem, Problem)
    assert problem.line == 3
    assert reason in problem.reason
    result, _, problems = read_decided(run)
    assert problems == (problem,)
    assert result.categories[2].status == "accepted"


def test_line_without_an_end_is_kept_apart(run: Path) -> None:
    (run / NAME).write_text('{"decision": "reject", "cat')  # as a killed process may leave it
    log = append(run, [ACCEPT])
    assert isinstance(log.entries[0], Problem)
    assert log.entries[1] == ACCEPT


def test_run_of_the_first_format_takes_decisions(run: Path) -> None:
    unseal(run)
    log = append(run, [ACCEPT], expected=read_log(run).digest)
    assert read_decided(run)[0].categories[2].status == "accepted"
    with pytest.raises(StaleError):
        append(run, [ACCEPT], expected="another")
    assert read_log(run) == log


def test_stale_digest_is_told_and_nothing_is_written(run: Path) -> None:
    seen = read_log(run).digest
    append(run, [ACCEPT], expected=seen)
    before = (run / NAME).read_bytes()
    with pytest.raises(StaleError, match="have changed since they were read"):
        append(run, [Decision("reject", category="c3")], expected=seen)
    assert (run / NAME).read_bytes() == before


def test_digest_of_a_replaced_run_is_stale(run: Path) -> None:
    seen = read_log(run).digest
    with new_run(run, True) as folder:
        write_run(replace(small_result(), notes=("another run",)), folder)
    with pytest.raises(StaleError, match="or the run was replaced"):
        append(run, [ACCEPT], expected=seen)


def test_run_with_decisions_is_not_replaced(run: Path) -> None:
    append(run, [ACCEPT])
    with pytest.raises(InputError, match=r"has decisions of a person \(decisions.jsonl\)"):
        check_run_folder(run, force=True)


def test_decisions_that_come_while_a_run_is_replaced_are_kept(run: Path) -> None:
    def replace_run() -> None:
        with new_run(run, True) as new:
            write_run(small_result(), new)
            append(run, [ACCEPT])

    with pytest.raises(InputError, match="changed by another program"):
        replace_run()
    assert read_log(run).entries == (ACCEPT,)


def test_page_left_open_over_a_refit_is_told(run: Path) -> None:
    append(run, [ACCEPT])
    seen = read_log(run).digest
    append(run, [Decision("refit", run="next-run")])
    before = (run / NAME).read_bytes()
    with pytest.raises(StaleError, match="read them again and decide again"):
        append(run, [Decision("reject", category="c4")], expected=seen)
    assert (run / NAME).read_bytes() == before


def test_refitted_run_takes_no_more_decisions_until_that_is_undone(run: Path) -> None:
    append(run, [ACCEPT, Decision("refit", run="next-run")])
    before = (run / NAME).read_bytes()
    with pytest.raises(InputError, match=r"was refitted into next-run.*undo line 2"):
        append(run, [Decision("reject", category="c4")])
    assert (run / NAME).read_bytes() == before
    append(run, [Decision("undo", line=2)])
    assert append(run, [Decision("reject", category="c4")]).refit is None


@pytest.mark.parametrize("failing", ["write", "fsync"])
def test_full_disk_leaves_the_file_as_it_was(
    run: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    append(run, [ACCEPT])
    before = (run / NAME).read_bytes()
    write = os.write

    def full(handle: int, *data: Any) -> int:
        if data and len(data[0]) > 10:
            return write(handle, data[0][:10])  # a part gets onto the disk
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, full)
        with pytest.raises(InputError, match=r"cannot write .*No space left on device; free space"):
            append(run, [Decision("reject", category="c4")])
    assert (run / NAME).read_bytes() == before
    assert len(append(run, [Decision("reject", category="c4")]).entries) == 2


def test_writers_do_not_lose_each_others_decisions(run: Path) -> None:
    def write(author: str) -> None:
        for _ in range(20):
            append(run, [Decision("note", text="x" * 5000, author=author)])

    threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    code = (
        "import sys; from pathlib import Path; from newfound.decisions import Decision, append\n"
        "for _ in range(20): append(Path(sys.argv[1]), [Decision('note', text='y', author='d')])"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(run)])
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert other.wait() == 0
    authors = [entry.author for entry in read_log(run).entries if isinstance(entry, Decision)]
    assert sorted(authors, key=str) == sorted("abcd" * 20)


def test_only_a_run_folder_takes_decisions(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a run folder"):
        append(tmp_path, [ACCEPT])
    assert not (tmp_path / NAME).exists()


def test_decisions_that_cannot_be_read_are_an_error(run: Path) -> None:
    (run / NAME).mkdir()
    with pytest.raises(InputError, match=r"decisions.jsonl cannot be read"):
        read_log(run)
    with pytest.raises(InputError, match="cannot write"):
        append(run, [ACCEPT])


def test_acknowledged_decision_survives_a_killed_process(run: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from newfound.decisions import Decision, append\n"
        "append(Path(sys.argv[1]), [Decision('note', text='kept')])\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run)], check=False)
    assert done.returncode < 0
    assert read_log(run).entries == (Decision("note", text="kept"),)
    append(run, [ACCEPT])  # the lock is free
