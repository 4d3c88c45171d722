"""Settings: where they come from, how a user's values are read, and what is refused."""

import dataclasses
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newfound.config import (
    Layers,
    RunConfig,
    describe_type,
    flag_of,
    override,
    setting,
    settings_of,
)
from newfound.errors import InputError
from newfound.estimator import CategoryDiscoverer
from newfound.methods import METHODS, resolve_config


@dataclass(frozen=True)
class Sample:
    count: int = setting(3, "a count", low=1)
    share: float = setting(0.5, "a share", high=1)
    layers: Layers = setting("all", "layers")
    kind: Literal["cls", "mean"] | None = setting(None, "a choice")
    on: bool = setting(True, "a switch")
    name: str | None = setting(None, "a name")


def changed(**changes: Any) -> Sample:
    return override(Sample(), changes, "sample")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"count": "7"}, 7),
        ({"count": 7.0}, 7),
        ({"count": np.int64(7)}, 7),
        ({"share": "0.25"}, 0.25),
        ({"share": "1e-1"}, 0.1),
        ({"share": 1}, 1.0),
        ({"layers": "2"}, 2),
        ({"layers": "all"}, "all"),
        ({"kind": "mean"}, "mean"),
        ({"kind": "none"}, None),
        ({"kind": None}, None),
        ({"on": "false"}, False),
        ({"on": "True"}, True),
        ({"on": False}, False),
        ({"name": Path("a/b")}, "a/b"),
        ({"name": "5"}, "5"),
    ],
)
def test_values_are_converted_to_the_type_of_the_field(given: dict[str, Any], wanted: Any) -> None:
    ((name, _),) = given.items()
    found = getattr(changed(**given), name)
    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"count": "many"}, "sample: count must be a whole number, not 'many'"),
        ({"count": 2.5}, "sample: count must be a whole number, not 2.5"),
        ({"count": True}, "sample: count must be a whole number, not True"),
        ({"count": None}, "sample: count must be a whole number, not None"),
        ({"count": 0}, "sample: count must be at least 1, not 0"),
        ({"count": "-3"}, "sample: count must be at least 1, not -3"),
        ({"count": math.inf}, "sample: count must be a whole number, not inf"),
        ({"share": "nan"}, "sample: share must be from 0 to 1, not nan"),
        ({"share": 1.5}, "sample: share must be from 0 to 1, not 1.5"),
        ({"share": "much"}, "sample: share must be a number, not 'much'"),
        ({"layers": "some"}, "sample: layers must be all or a whole number, not 'some'"),
        ({"layers": -1}, "sample: layers must be at least 0, not -1"),
        ({"kind": "max"}, "sample: kind must be cls or mean, not 'max'"),
        ({"kind": ["cls"]}, "sample: kind must be cls or mean, not ['cls']"),
        ({"on": "perhaps"}, "sample: on must be true or false, not 'perhaps'"),
        ({"on": 1}, "sample: on must be true or false, not 1"),
        ({"name": 5}, "sample: name must be a string, not 5"),
        ({"size": 5}, "sample has no setting 'size'; it has count, kind, layers, name, on, share"),
    ],
)
def test_invalid_values_are_errors_with_the_name_of_the_setting(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        changed(**given)
    assert str(caught.value) == message


def test_infinity_is_an_error() -> None:
    @dataclass(frozen=True)
    class Rate:
        rate: float = setting(1.0, "a rate")

    with pytest.raises(InputError, match="at least 0"):
        override(Rate(), {"rate": "inf"}, "sample")


@given(st.one_of(st.none(), st.text(), st.integers(), st.floats(), st.booleans(), st.binary()))
def test_any_value_is_accepted_after_a_check_or_rejected(value: Any) -> None:
    for field in dataclasses.fields(Sample):
        try:
            found = getattr(changed(**{field.name: value}), field.name)
        except InputError:
            continue
        # What was taken stands the check again, unchanged.
        assert getattr(changed(**{field.name: found}), field.name) == found


def test_errors_use_the_name_that_the_user_wrote() -> None:
    with pytest.raises(InputError) as caught:
        override(RunConfig(), {"n_categories": "many"}, "the command", spelt=flag_of)
    assert str(caught.value) == "--categories must be auto or a whole number, not 'many'"


def test_types_are_readable_in_help_texts() -> None:
    shown = {name: describe_type(kind) for name, kind, _, _ in settings_of(RunConfig)}
    assert shown["n_categories"] == "auto|int"
    assert shown["effort"] == "fast|balanced|best"
    assert shown["pooling"] == "cls|mean"
    assert shown["device"] == "str"
    assert describe_type(bool) == "true|false"


@pytest.mark.parametrize(
    "config", [RunConfig, *(method.config for method in METHODS.values())], ids=str
)
def test_every_setting_has_help_and_a_valid_default(config: type) -> None:
    for name, _, default, help in settings_of(config):
        assert len(help) > 5, name
        assert getattr(override(config(), {name: default}, "it"), name) == default


def test_estimator_has_a_parameter_for_every_field() -> None:
    defaults = CategoryDiscoverer().get_params()
    for name, _, default, _ in settings_of(RunConfig):
        assert defaults[name] == default, name


@pytest.mark.parametrize("name", METHODS)
def test_user_settings_override_the_effort(name: str) -> None:
    for effort in ("fast", "balanced", "best"):
        preset = METHODS[name].efforts.get(effort, {})
        resolved = resolve_config(name, effort, None)
        assert {key: getattr(resolved, key) for key in preset} == dict(preset)
    first = next(key for key, kind, _, _ in settings_of(METHODS[name].config) if kind is int)
    for effort in ("fast", "balanced", "best"):
        assert getattr(resolve_config(name, effort, {first: "1234"}), first) == 1234
    with pytest.raises(InputError, match=f"method {re.escape(name)} has no setting 'speed'"):
        resolve_config(name, "best", {"speed": 3})
