"""A `Predictor` in Spark's mapInPandas gives the answers of `newfound predict`."""

import math
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from support.shards import contents

from newfound import Predictor

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")


def test_spark_gives_the_answers_of_the_command(
    small_run: Path,
    shards: list[Path],
    expected: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(tmp_path / "warehouse"))
        # One batch per shard, because the last digits of a probability depend on the batch.
        .config("spark.sql.files.maxPartitionBytes", str(2**20))
        .config("spark.sql.files.openCostInBytes", str(2**20))
        .getOrCreate()
    )
    try:
        predictor = Predictor(small_run, device="cpu")
        table = spark.read.parquet(*(str(path) for path in shards))
        found = table.mapInPandas(
            lambda batches: map(predictor, batches), schema=predictor.spark_schema
        )
        rows = {row["id"]: row.asDict() for row in found.collect()}
    finally:
        spark.stop()
    wanted: dict[str, dict[str, Any]] = {
        row["id"]: row for part in contents(expected).values() for row in part
    }
    assert rows.keys() == wanted.keys()
    for name, row in wanted.items():
        assert rows[name].keys() == row.keys()
        for column, value in row.items():
            given = rows[name][column]
            assert given == value or (value is None and math.isnan(given))
