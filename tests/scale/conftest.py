"""Tests on Ray and Spark: one run, its shards, and what every way to predict them must give."""

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.shards import put_shards

from newfound.prediction import Predictor
from newfound.sharding.runner import predict_shards


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("scale")


@pytest.fixture(scope="session")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Tables to predict; to be read only."""
    return put_shards(tmp_path_factory.mktemp("shards"), 16, 300)


@pytest.fixture(scope="session")
def expected(small_run: Path, shards: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of predictions of the shards, made in one process."""
    out = tmp_path_factory.mktemp("expected") / "out"
    assert predict_shards(Predictor(small_run), shards, out).failed == {}
    return out


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Let no test leave processes or temporary folders of Ray behind."""
    yield
    children = psutil.Process().children(recursive=True)
    assert [child.name() for child in children if "ray" in child.name()] == []
    assert list(Path("/tmp").glob(f"newfound-ray-{os.getpid()}-*")) == []
