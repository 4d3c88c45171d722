"""`newfound discover --engine ray`: workers share the encoding of a large table."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.commands import Command
from support.small_texts import QUICK_FLAGS, small_task

from newfound.storage.run_folder import read_run


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_give_the_answers_of_one_process(
    command: Command, put: Any, tiny_encoder: str, tmp_path: Path, workers: int
) -> None:
    table = put("table.csv", small_task(each=60).csv())
    flags = ["--encoder", tiny_encoder, *QUICK_FLAGS, "--categories", "4", "--fit-texts", "100"]
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    assert command("discover", table, "-o", alone, *flags).code == 0
    engine = ["--engine", "ray", "--workers", str(workers)]
    assert command("discover", table, "-o", shared, *flags, *engine).code == 0
    one, other = read_run(alone), read_run(shared)
    np.testing.assert_array_equal(one.predicted, other.predicted)
    assert one.sample == other.sample
