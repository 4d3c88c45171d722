"""A check on disk."""

import json
import math
from pathlib import Path

import pytest

from newfound.checking.check import Check, MethodCheck
from newfound.checking.forecast import Whole
from newfound.checking.scores import DrawScores
from newfound.errors import InputError
from newfound.storage.check_file import read_check, write_check

DRAW = DrawScores(80.0, math.nan, 50.0, math.nan, 100.0, -50.0, 3.25, 9, 2, 0, 7)
WHOLE = Whole(80.0, math.nan, 0.0, 9)
CHECK = Check((MethodCheck("dpn", (DRAW,), 1.5, WHOLE),), 64, 32, 4, 0.25, {"seed": 0})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "check.json"
    write_check(CHECK, path, command="newfound check t.csv")
    assert repr(read_check(path)) == repr(CHECK)  # NaN is not equal to itself
    value = json.loads(path.read_text())
    assert value["command"] == "newfound check t.csv"
    assert value["methods"][0]["mean"]["novel"] == 50
    assert value["methods"][0]["mean"]["known"] is None
    assert value["methods"][0]["forecast"] == {"all": 80, "known": 80, "novel": None}


def test_files_without_a_forecast_are_read(tmp_path: Path) -> None:
    path = tmp_path / "check.json"
    write_check(CHECK, path)
    value = json.loads(path.read_text())
    del value["methods"][0]["whole"], value["methods"][0]["draws"][0]["known_gap"]
    path.write_text(json.dumps(value))
    (method,) = read_check(path).methods
    assert (method.forecast, method.expected()) == (None, "-")
    assert math.isnan(method.draws[0].known_gap)


@pytest.mark.parametrize(
    "change",
    [
        {"methods": 3},
        {"methods": [{"method": "dpn"}]},
        {"methods": [{"method": "dpn", "draws": [{"all": "x"}], "seconds": 1}]},
        {"methods": [{"method": "dpn", "draws": [], "seconds": 1, "whole": {"known": "x"}}]},
        {"texts": None},
        {"format": "one"},
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "check.json"
    write_check(CHECK, path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=r"damaged.*run `newfound check` again"):
        read_check(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "check.json"
    path.write_text("{}")
    with pytest.raises(InputError, match="not written by newfound"):
        read_check(path)
    path.write_text('{"format": 99}')
    with pytest.raises(InputError, match="install a newer version"):
        read_check(path)
