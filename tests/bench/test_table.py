"""`newfound bench table`: result lines as a Markdown table."""

from pathlib import Path

import pytest
from support.bench_fakes import fake_count, fake_line

from newfound.bench.lines import append_line
from newfound.bench.table import result_table
from newfound.cli.main import main
from newfound.errors import InputError


def rows_of(table: str) -> list[list[str]]:
    """Return the cells of every row of the first table, without its header."""
    lines = [line for line in table.split("\n\n")[0].splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_seeds_of_a_configuration_share_a_row() -> None:
    lines = [fake_line(seed=seed, scores=(70.0 + 2 * seed, 80.0, 50.0)) for seed in (0, 1)]
    (row,) = rows_of(result_table(lines))
    protocol = ["banking", "`dpn`", "best", "minilm", "0.75", "0.1", "given", "0, 1"]
    assert row[:8] == protocol
    assert row[8:11] == ["71.0 ± 1.4", "80.0 ± 0.0", "50.0 ± 0.0"]
    assert row[11:] == ["72.0 ± 1.4", "81.0 ± 0.0", "51.0 ± 0.0", "40"]


def test_protocols_and_settings_have_separate_rows() -> None:
    lines = [
        fake_line(seed=0),
        fake_line(seed=1),
        fake_line(epochs=10),
        fake_line(known_ratio=0.25),
        fake_line(effort="fast", epochs=1),
        fake_line(given_k=False, estimated=70),
        {**fake_line(), "kind": "search"},
        fake_count("banking", 0, 70, {"2": 100}),
    ]
    rows = [(row[1], row[2], *row[4:7]) for row in rows_of(result_table(lines))]
    assert rows == [
        ("`dpn`", "best", "0.75", "0.1", "given"),
        ("`dpn`, epochs=10", "best", "0.75", "0.1", "given"),
        ("`dpn`", "fast", "0.75", "0.1", "given"),
        ("`dpn`", "best", "0.75", "0.1", "estimated"),
        ("`dpn`", "best", "0.25", "0.1", "given"),
    ]


def test_command_reads_several_files_and_keeps_the_last_of_equal_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    append_line(first, fake_line(scores=(10.0, 10.0, 10.0)))
    append_line(second, fake_line(scores=(20.0, 20.0, 20.0)))
    speed = {"fp32": {"seconds": 4.0}}
    line = {"kind": "speed", "method": "encoding", "data_set": "banking", "encoder": "minilm"}
    config = {"texts": 4000, "repeats": 3}
    append_line(second, {**line, "config": config, "device": "cpu", "measures": speed})
    assert main(["bench", "table", str(first), str(second)]) == 0
    shown = capsys.readouterr().out
    (row,) = rows_of(shown)
    assert row[8] == "20.0"
    assert "**Encoding** (cpu, minilm, medians of 3, 4,000 texts of banking)" in shown


def test_errors_for_missing_files_and_files_without_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "table", str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl is not a file" in capsys.readouterr().err
    with pytest.raises(InputError, match="neither runs nor speed measurements"):
        result_table([{"kind": "split", "data_set": "banking"}])
