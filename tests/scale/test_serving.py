"""schemathesis finds nothing in the HTTP interface."""

from pathlib import Path

import pytest
from support.serving import serving

from benchmarks.serving.parts import run_schemathesis


@pytest.mark.parametrize("token", [None, "a-token-of-tests-0123456789"])
def test_schemathesis_finds_nothing(small_run: Path, token: str | None) -> None:
    flags = [] if token is None else ["--header", f"Authorization: Bearer {token}"]
    with serving(small_run, token=token) as client:
        found = run_schemathesis(f"http://127.0.0.1:{client.port}", "--max-examples", "30", *flags)
    assert found["found"] == 0, found["output"]
    assert found["cases"] > 50
