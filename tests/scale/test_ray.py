"""`newfound predict --engine ray`: equal answers, exact counts, faults of workers and driver."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
from support.commands import Command
from support.shards import check_counts, contents, manifest, put_shards

WORKER = "ray::_Worker"


def arguments(run: Path, shards: list[Path], out: Path, workers: int) -> list[str]:
    """Return the arguments that predict shards on Ray."""
    pattern = str(shards[0].parent / "*.parquet")
    flags = ["--engine", "ray", "--workers", str(workers), "--device", "cpu"]
    return ["predict", str(run), pattern, "-o", str(out), *flags]


def started(words: list[str]) -> "subprocess.Popen[str]":
    """Start the command in another process."""
    return subprocess.Popen(
        [sys.executable, "-m", "newfound", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def workers_of(process: psutil.Process) -> list[psutil.Process]:
    """Return the worker processes that a command has started."""
    found = []
    for child in process.children(recursive=True):
        try:
            if child.name().startswith(WORKER[:15]):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


def written(out: Path) -> dict[str, tuple[int, int]]:
    """Return what changes when an output is written again, by name."""
    found = {path.name: path.stat() for path in out.glob("*.parquet")}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in found.items()}


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_any_number_of_workers_gives_the_same_answers(
    command: Command,
    small_run: Path,
    shards: list[Path],
    expected: Path,
    tmp_path: Path,
    workers: int,
) -> None:
    listening: set[str] = set()
    seen: set[int] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            seen.update(worker.pid for worker in workers_of(psutil.Process()))
            for child in psutil.Process().children(recursive=True):
                try:
                    connections = child.net_connections()
                except psutil.Error:
                    continue
                listening.update(c.laddr.ip for c in connections if c.status == "LISTEN")

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        found = command(*arguments(small_run, shards, tmp_path / "out", workers))
    finally:
        done.set()
        watcher.join()
    assert found.code == 0, found.err
    assert all(line.startswith("note: ") for line in found.err.splitlines()), found.err
    assert contents(tmp_path / "out") == contents(expected)
    check_counts(tmp_path / "out", shards)
    assert len(seen) == workers
    assert listening
    assert listening <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    # The bytes are the same, too.
    entries = [manifest(folder)["shards"] for folder in (tmp_path / "out", expected)]
    digests = [{name: entry["sha256"] for name, entry in each.items()} for each in entries]
    assert digests[0] == digests[1]


def test_workers_killed_at_ten_random_moments_cost_nothing(small_run: Path, tmp_path: Path) -> None:
    shards = put_shards(tmp_path / "shards", 60, 4000)
    out = tmp_path / "out"
    draw = random.Random(0)
    process = started(arguments(small_run, shards, out, 2))
    killed = 0
    victim = psutil.Process(process.pid)
    while killed < 10 and process.poll() is None:
        time.sleep(draw.uniform(0.1, 1.5))
        alive = workers_of(victim)
        if alive:
            draw.choice(alive).kill()
            killed += 1
    printed, problems = process.communicate(timeout=300)
    assert killed == 10
    assert process.returncode == 0, problems
    assert printed == f"{sum(4000 + i for i in range(60)):,} texts in 60 shards: {out}\n"
    check_counts(out, shards)


@pytest.mark.parametrize("finished", [0, 5])
def test_a_killed_driver_is_resumed_without_predicting_a_shard_twice(
    small_run: Path, shards: list[Path], expected: Path, tmp_path: Path, finished: int
) -> None:
    out = tmp_path / "out"
    words = arguments(small_run, shards, out, 2)
    process = started(words)
    workers: list[psutil.Process] = []
    while len(written(out)) < finished or not (out / "manifest.json").is_file():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    workers = workers_of(psutil.Process(process.pid))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    psutil.wait_procs(workers, timeout=20)
    before = written(out)
    assert finished <= len(before) < len(shards)
    again = started(words)
    printed, problems = again.communicate(timeout=200)
    assert again.returncode == 0, problems
    if before:
        assert f"{len(before)} shards were finished before" in printed
    after = written(out)
    assert {name: after[name] for name in before} == before
    check_counts(out, shards)
    assert contents(out) == contents(expected)


def test_an_interrupted_driver_leaves_no_process_and_is_resumed(
    small_run: Path, shards: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = arguments(small_run, shards, out, 2)
    process = started(words)
    while not written(out):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    _, problems = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "newfound: interrupted; the same command goes on with what is missing\n" in problems
    _, alive = psutil.wait_procs(family, timeout=20)
    assert alive == []
    recorded = manifest(out)
    assert recorded["complete"] is False
    assert sorted(recorded["shards"]) == sorted(written(out))
    again = started([*words, "--json"])
    printed, problems = again.communicate(timeout=200)
    assert again.returncode == 0, problems
    assert json.loads(printed)["finished_before"] == len(recorded["shards"])
    check_counts(out, shards)


def test_a_cluster_that_loses_a_machine_finishes(small_run: Path, tmp_path: Path) -> None:
    from newfound.sharding.ray_workers import ADDRESS, alone

    shards = put_shards(tmp_path / "shards", 12, 3000)
    out = tmp_path / "out"
    environment = {**os.environ, **alone()}
    script = tmp_path / "cluster.py"
    # In a process of its own, because Ray reads the variables when it is imported.
    script.write_text(
        "import sys\n"
        "from ray.cluster_utils import Cluster\n"
        "cluster = Cluster(True, head_node_args={'num_cpus': 1, 'object_store_memory': 10**8})\n"
        "other = cluster.add_node(num_cpus=1, object_store_memory=10**8)\n"
        "cluster.wait_for_nodes()\n"
        "print(cluster.address, flush=True)\n"
        "sys.stdin.readline()\n"
        "cluster.remove_node(other)\n"
        "print('removed', flush=True)\n"
        "sys.stdin.readline()\n"
        "cluster.shutdown()\n"
    )
    cluster = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert cluster.stdin is not None
    assert cluster.stdout is not None
    try:
        address = cluster.stdout.readline().strip()
        words = arguments(small_run, shards, out, 2)
        process = subprocess.Popen(
            [sys.executable, "-m", "newfound", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment, ADDRESS: address},
        )
        while len(written(out)) < 2:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        cluster.stdin.write("\n")
        cluster.stdin.flush()
        assert cluster.stdout.readline() == "removed\n"
        assert len(written(out)) < len(shards)
        _, problems = process.communicate(timeout=200)
        assert process.returncode == 0, problems
        check_counts(out, shards)
    finally:
        cluster.communicate("\n", timeout=60)


def test_a_missing_cluster_is_one_sentence(
    small_run: Path, shards: list[Path], tmp_path: Path
) -> None:
    words = arguments(small_run, shards, tmp_path / "out", 1)
    done = subprocess.run(
        [sys.executable, "-m", "newfound", *words],
        env={**os.environ, "RAY_ADDRESS": "127.0.0.1:1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line.startswith("newfound: ")]
    assert len(lines) == 1
    assert "the cluster at RAY_ADDRESS=127.0.0.1:1 cannot be reached" in lines[0]


def test_ray_data_calls_the_predictor(
    small_run: Path, shards: list[Path], expected: Path, tmp_path: Path
) -> None:
    from newfound.prediction import Predictor
    from newfound.sharding.ray_workers import cluster

    with cluster(2) as ray:
        ray.data.DataContext.get_current().enable_progress_bars = False
        table = ray.data.from_arrow([pq.read_table(path) for path in shards[:4]])
        found = table.map_batches(
            Predictor,
            fn_constructor_args=(str(small_run),),
            fn_constructor_kwargs={"device": "cpu"},
            concurrency=2,
            batch_format="pandas",
        ).take_all()
    wanted = {row["id"]: row for path in shards[:4] for row in contents(expected)[path.name]}
    assert {row["id"]: row["category"] for row in found} == {
        name: row["category"] for name, row in wanted.items()
    }
    assert len(found) == len(wanted)


class Sums:
    """Work that fails in several ways."""

    def __init__(self, loads: Any = None) -> None:
        self.loads = loads

    def load(self) -> None:
        if self.loads is not None:
            raise self.loads

    def __call__(self, item: int) -> int:
        if item == 13:
            os._exit(1)
        if item == 99:
            raise KeyError("no such item")
        return item * item


def test_items_whose_workers_end_are_lost_and_errors_are_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Workers import this module, and so what it imports.
    tests = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", tests, prepend=os.pathsep)
    from newfound.errors import InputError
    from newfound.sharding import ray_workers

    with ray_workers.cluster(2):
        items = [1, 2, 13, 4, 5]
        found = dict(ray_workers.call_on_ray(Sums(), items, workers=2))
        assert {at: found[at] for at in (0, 1, 3, 4)} == {0: 1, 1: 4, 3: 16, 4: 25}
        assert found[2] == ray_workers.Lost(ray_workers.ATTEMPTS)
        assert "5 workers ended without an answer" in str(found[2])
        with pytest.raises(KeyError, match="no such item"):
            dict(ray_workers.call_on_ray(Sums(), [1, 99], workers=1))
        with pytest.raises(InputError, match="no model here"):
            dict(ray_workers.call_on_ray(Sums(InputError("no model here")), [1], workers=1))
        assert list(ray_workers.call_on_ray(Sums(), [], workers=1)) == []
