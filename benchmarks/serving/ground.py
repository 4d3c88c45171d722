"""What the measurements stand on: runs, texts, and the server in a process of its own."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newfound.bench.datasets import read_data_set
from newfound.bench.speed.growth import write_texts, write_tiny_encoder
from newfound.bench.speed.processes import newfound_command, run_process
from newfound.bench.speed.sample import draw_sample
from newfound.errors import InputError

SAMPLE = 2000  # texts of BANKING that a run is fitted on
SIZES = {"first": 77, "second": 60}  # categories of the two runs
CPU = ["--device", "cpu"]


@dataclass(frozen=True)
class Ground:
    """Two runs with the real encoder, one with a tiny encoder, and texts to predict.

    Attributes
    ----------
    runs : dict of str to Path
        The runs "first", "second" and "tiny".
    texts : list of str
        Test texts of BANKING.
    folder : Path
        For other files.
    """

    runs: dict[str, Path]
    texts: list[str]
    folder: Path


def make_ground(folder: Path, data: Path) -> Ground:
    """Make what is missing in a folder, which later measurements find again."""
    folder.mkdir(parents=True, exist_ok=True)
    banking = read_data_set(data, "banking")
    sample = draw_sample(banking, SAMPLE).write(folder / "sample.csv")
    runs = {name: folder / name for name in (*SIZES, "tiny")}
    flags = ["--text-column", "text", "--label-column", "label", "--effort", "fast", *CPU]
    for name, categories in SIZES.items():
        _discover(sample, runs[name], "--categories", str(categories), *flags)
    if not (runs["tiny"] / "run.json").is_file():
        words = write_tiny_encoder(folder / "encoder", "minilm")
        table = write_texts(folder / "tiny.csv", words, 600, seed=1)
        tiny = ["--encoder", str(folder / "encoder"), "--effort", "fast", *CPU]
        _discover(table, runs["tiny"], "--categories", "50", *tiny)
    texts = list(dict.fromkeys(banking.texts["test"]))
    return Ground(runs, texts, folder)


def _discover(table: Path, run: Path, *flags: str) -> None:
    """Make a run, unless there is one."""
    if not (run / "run.json").is_file():
        run_process(newfound_command("discover", str(table), "-o", str(run), *flags))


@dataclass(frozen=True)
class Served:
    """A running server."""

    port: int
    process: "subprocess.Popen[str]"

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def send(self, method: str, path: str) -> tuple[int, bytes]:
        """Send a request without a body; return the status and the body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content

    def health(self) -> Any:
        """Return the answer of /health."""
        return json.loads(self.send("GET", "/health")[1])

    def wait_until_idle(self) -> None:
        """Wait until requests of clients that have gone are answered."""
        while self.health()["waiting"]:
            time.sleep(0.1)
        time.sleep(1.0)  # of the last batches

    def metric(self, name: str) -> float:
        """Return the value of a metric."""
        for line in self.send("GET", "/metrics")[1].decode().splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[-1])
        raise InputError(f"the server has no metric {name}")


@contextmanager
def serving(run: Path, *flags: str) -> Iterator[Served]:
    """Serve a run on a free port while the block runs; its end must be clean."""
    command = newfound_command("serve", str(run), "--port", "0", *CPU, "--fp32", *flags)
    environment = {k: v for k, v in os.environ.items() if k != "NEWFOUND_TOKEN"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    seen = []
    try:
        for line in process.stderr:
            seen.append(line)
            if "is served at" in line:
                break
        else:
            raise InputError(f"the server did not start: {' '.join(seen)}")
        yield Served(int(line.split("http://127.0.0.1:")[1].split(";")[0]), process)
        process.send_signal(signal.SIGTERM)
        if process.wait(60):
            raise InputError(f"the server ended with {process.returncode}: {process.stderr.read()}")
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def answers_of(run: Path, texts: Sequence[str]) -> dict[str, list[Any]]:
    """Return the predictions of texts by `newfound predict`, by the sha256 of the model."""
    from newfound.prediction import model_digest

    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    command = newfound_command("predict", str(run), "-", *CPU, "--fp32")
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    left = [{k: v for k, v in row.items() if k not in ("id", "text")} for row in rows]
    return {model_digest(run): left}


def python_module(*arguments: str) -> list[str]:
    """Return the command line of a module."""
    return [sys.executable, "-m", *arguments]
