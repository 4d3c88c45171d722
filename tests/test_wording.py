"""A number with its noun, and suggestions for misspelt names."""

import pytest

from newfound.bench.planning import data_sets
from newfound.config import RunConfig, override
from newfound.data.tables.columns import find_columns
from newfound.errors import InputError
from newfound.methods import find_method, resolve_config
from newfound.wording import closest, plural, suggestion


def test_plural_chooses_the_noun_and_adds_thousands_separators() -> None:
    assert [plural(n, "text") for n in (0, 1, 2, 12345)] == [
        "0 texts",
        "1 text",
        "2 texts",
        "12,345 texts",
    ]
    assert plural(1, "category has", "categories have") == "1 category has"
    assert plural(3, "category has", "categories have") == "3 categories have"


def test_closest_ignores_case_and_keeps_the_spelling() -> None:
    assert closest("MESSAGE", ["Message", "label"]) == "Message"
    assert closest(" mesage ", ["Message", "label"]) == "Message"
    assert closest("nothing like it", ["Message", "label"]) is None
    assert closest("x", []) is None


def test_suggestion_falls_back_to_the_other_advice() -> None:
    assert suggestion("epoch", ["epochs", "seed"], "see --help") == "did you mean 'epochs'?"
    assert suggestion("zzz", ["epochs", "seed"], "see --help") == "see --help"


def test_every_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"^the method 'newfond' .*did you mean 'newfound'\?$"):
        find_method("newfond")
    with pytest.raises(InputError, match=r"no setting 'epoch'; did you mean 'epochs'\?$"):
        resolve_config("dpn", "fast", {"epoch": 3})
    with pytest.raises(InputError, match=r"no setting 'methd'; did you mean 'method'\?$"):
        override(RunConfig(), {"methd": "dpn"}, "the command")
    with pytest.raises(InputError, match=r"no column 'txt': did you mean 'text'\?$"):
        find_columns("t.csv", ["text", "label"], text="txt")
    with pytest.raises(InputError, match=r"the data set 'bankin' .*did you mean 'banking'\?$"):
        data_sets("bankin")
