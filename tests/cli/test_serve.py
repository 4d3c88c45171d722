"""`newfound serve`: what it refuses before it listens."""

import sys
from pathlib import Path

import pytest
from support.commands import Refuse

from newfound.serving.server import listen


@pytest.fixture(autouse=True)
def without_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEWFOUND_TOKEN", raising=False)


def test_beyond_this_machine_a_token_is_required(refuse: Refuse, small_run: Path) -> None:
    sentence = refuse("serve", small_run, "--host", "0.0.0.0", "--port", "0")
    assert "a token is required: set NEWFOUND_TOKEN" in sentence


@pytest.mark.parametrize("token", ["", "short", "with a line feed in it\n", "caf\u00e9" * 8])
def test_weak_tokens_are_refused(
    refuse: Refuse, small_run: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("NEWFOUND_TOKEN", token)
    assert "openssl rand -hex 32" in refuse("serve", small_run)


def test_bad_addresses_and_limits_are_refused(refuse: Refuse, small_run: Path) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        assert "cannot listen on 127.0.0.1" in refuse("serve", small_run, "--port", port)
    assert "cannot listen on" in refuse("serve", small_run, "--host", "192.0.2.1")
    assert "--port must be from 0 to 65535" in refuse("serve", small_run, "--port", "70000")
    assert "--queue must be more than 0" in refuse("serve", small_run, "--queue", "0")
    assert "--time-limit must be more" in refuse("serve", small_run, "--time-limit", "nan")


def test_a_missing_run_is_refused(refuse: Refuse, tmp_path: Path) -> None:
    assert "is not a model of newfound" in refuse("serve", tmp_path / "none", "--port", "0")


def test_a_missing_package_names_the_extra(
    refuse: Refuse, small_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("newfound.serving")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "install newfound[serve]" in refuse("serve", small_run)
