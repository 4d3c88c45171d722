"""A new run takes the place of the old one, and a broken one does not."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.serving import Client, serving
from support.small_texts import QUICK_FLAGS, SmallTask

from newfound.cli.main import main
from newfound.decisions import Decision, append
from newfound.serving.server import LAST
from newfound.serving.service import ENDING, Limits


@pytest.fixture(scope="module")
def other_run(small_run: Path, tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the same texts with fewer categories."""
    table = small_run.parent / "table.csv"
    folder = tmp_path_factory.mktemp("other") / "run"
    flags = ["--categories", "3", "--encoder", tiny_encoder, *QUICK_FLAGS]
    assert main(["discover", str(table), "-o", str(folder), *flags]) == 0
    return folder


def point(link: Path, folder: Path) -> None:
    """Let a link point to another run, in one step."""
    temporary = link.with_suffix(".new")
    temporary.symlink_to(folder)
    temporary.replace(link)


def test_no_request_is_dropped_or_wrong_while_runs_change(
    small_run: Path, other_run: Path, tmp_path: Path, task: SmallTask
) -> None:
    link = tmp_path / "current"
    point(link, small_run)
    texts = task.texts[:20]
    with serving(link) as client:
        wanted = {}
        for run in (other_run, small_run):
            point(link, run)
            assert client.send("POST", "/reload").status == 200
            answers = [client.predict({"text": text}).value for text in texts]
            wanted[answers[0]["model"]] = [answer["predictions"] for answer in answers]
        assert len(wanted) == 2
        first, second = wanted.values()
        assert first != second
        ended = threading.Event()
        seen = set()

        def ask(offset: int) -> int:
            count = 0
            while not ended.is_set():
                i = (offset + count) % len(texts)
                answer = client.predict({"text": texts[i]})
                assert answer.status == 200, answer
                assert answer.value["predictions"] == wanted[answer.value["model"]][i]
                seen.add(answer.value["model"])
                count += 1
            return count

        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask, offset) for offset in range(4)]
            try:
                for i in range(4):
                    point(link, (other_run, small_run)[i % 2])
                    reloaded = client.send("POST", "/reload")
                    assert reloaded.status == 200
                    assert reloaded.value["model"] == client.get("/health").value["model"]
            finally:
                ended.set()
            assert all(future.result() for future in asking)
        assert seen == set(wanted)
        assert client.get("/health").value["last_reload"] == "done"


def test_a_broken_run_leaves_the_old_one_serving(small_run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(small_run, tmp_path / "run"))
    with serving(folder) as client:
        before = client.predict({"text": "rain"}).value
        model = folder / "model" / "prototypes.safetensors"
        content = model.read_bytes()
        model.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        refused = client.send("POST", "/reload")
        assert refused.status == 409
        assert "the new run cannot be used, so the old one is still served" in refused.error
        assert "damaged" in refused.error
        assert client.predict({"text": "rain"}).value == before
        assert client.get("/health").value["last_reload"] == "failed"
        assert "the old one stays" in client.reports[-1]
        assert 'reloads_total{outcome="failed"} 1.0' in client.get("/metrics").body.decode()
        model.write_bytes(content)
        assert client.send("POST", "/reload").status == 200
        assert client.get("/health").value["last_reload"] == "done"
        assert "was loaded again" in client.reports[-1]


def test_the_model_that_is_named_changes_with_decisions(small_run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(small_run, tmp_path / "run"))
    with serving(folder) as client:
        before = client.get("/categories").value
        append(folder, [Decision("rename", category="c1", name="A new name")])
        assert client.send("POST", "/reload").status == 200
        after = client.get("/categories").value
        assert after["categories"][0]["name"] == "A new name"
        assert after["model"] != before["model"]
        assert client.predict({"text": "rain"}).value["model"] == after["model"]
        append(folder, [Decision("undo", line=1)])
        assert client.send("POST", "/reload").value["model"] == before["model"]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs POSIX signals")
def test_signals_reload_and_end_the_command(small_run: Path, task: SmallTask) -> None:
    command = [sys.executable, "-m", "newfound", "serve", str(small_run), "--port", "0"]
    environment = {k: v for k, v in os.environ.items() if k != "NEWFOUND_TOKEN"}
    process = subprocess.Popen(
        [*command, "--device", "cpu"], stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        assert "is served at http://127.0.0.1:" in line
        client = Client(int(line.split("http://127.0.0.1:")[1].split(";")[0]))
        process.send_signal(signal.SIGHUP)
        assert "was loaded again" in process.stderr.readline()
        texts = [f"{text} {i}" for text in task.texts[:25] for i in range(40)]
        with ThreadPoolExecutor(4) as pool:
            sent = [pool.submit(client.predict, {"texts": texts}) for _ in range(4)]
            while client.get("/health").value["waiting"] == 0:
                assert not any(future.done() for future in sent)
            process.send_signal(signal.SIGTERM)
            answers = [future.result() for future in sent]
        assert [answer.status for answer in answers] == [200] * 4
        assert all(answer.value == answers[0].value for answer in answers)
        assert len(answers[0].value["predictions"]) == 1000
        assert process.wait(30) == 0
        assert process.stderr.read() == "all requests were answered\n"
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def start(run: Path, patch: str, *flags: str) -> "subprocess.Popen[str]":
    """Start the command in a process in which some code was run before."""
    words = ["serve", str(run), "--port", "0", "--device", "cpu", *flags]
    script = f"import sys\n{patch}\nfrom newfound.cli.main import main\nsys.exit(main({words!r}))\n"
    environment = {k: v for k, v in os.environ.items() if k != "NEWFOUND_TOKEN"}
    return subprocess.Popen(
        [sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, env=environment
    )


SIGHUP_WHILE_LOADING = """
import os, signal
from newfound import prediction
plain = prediction.load_for_prediction
def loading(*words):
    prediction.load_for_prediction = service.load_for_prediction = plain
    os.kill(os.getpid(), signal.SIGHUP)
    return plain(*words)
prediction.load_for_prediction = loading
from newfound.serving import service
"""


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs POSIX signals")
def test_sighup_while_the_model_is_loading_loads_it_again(small_run: Path) -> None:
    process = start(small_run, SIGHUP_WHILE_LOADING)
    assert process.stderr is not None
    try:
        assert "is served at http://127.0.0.1:" in process.stderr.readline()
        assert "was loaded again" in process.stderr.readline()
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


SLOW = """
import time
from newfound.model import Model
from newfound.serving import service
service.ENDING = 0.5
plain = Model.predict
def predict(self, texts, *words, **more):
    if "slow" in texts:
        time.sleep(600)
    return plain(self, texts, *words, **more)
Model.predict = predict
"""


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_prediction_that_takes_for_ever_does_not_keep_the_service(small_run: Path) -> None:
    process = start(small_run, SLOW, "--time-limit", "1")
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        client = Client(int(line.split("http://127.0.0.1:")[1].split(";")[0]))
        with ThreadPoolExecutor(1) as pool:
            sent = pool.submit(client.predict, {"text": "slow"})
            while "newfound_batch_texts_count 1.0" not in client.get("/metrics").body.decode():
                time.sleep(0.01)
            process.terminate()
            assert sent.result().status == 503
        assert process.wait(20) == 0
        assert "some texts took too long to be predicted" in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_the_unit_of_systemd_leaves_time_to_end() -> None:
    page = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
    (stop,) = re.findall(r"TimeoutStopSec=(\d+)", page)
    assert int(stop) >= Limits().seconds + LAST + ENDING + 2
