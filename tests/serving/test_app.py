"""The HTTP interface: answers, errors, limits, the token, metrics and documentation."""

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from support.commands import Command
from support.serving import JSON, Client, serving
from support.small_texts import SmallTask

from newfound.model import Model, Predictions
from newfound.prediction import ModelOptions, prediction_columns

TOKEN = "a-token-of-tests-0123456789"


@pytest.fixture(scope="module")
def client(small_run: Path) -> Iterator[Client]:
    with serving(small_run, body=20_000, text=5000) as found:
        yield found


def test_answers_equal_those_of_predict_in_any_batch(
    client: Client, command: Command, task: SmallTask, small_run: Path
) -> None:
    texts = [*task.texts[:60], "", "caf\u00e9 \u4f60\u597d", "a\0b", "x " * 200]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    rows = [
        json.loads(line)
        for line in command("predict", small_run, "-", stdin=lines).out.splitlines()
    ]
    wanted = [{k: v for k, v in row.items() if k not in ("id", "text")} for row in rows]
    assert len({row["category"] for row in wanted}) > 2
    together = client.predict({"texts": texts})
    assert together.status == 200
    assert together.value["predictions"] == wanted
    with ThreadPoolExecutor(16) as pool:  # in batches with whatever arrives at the same time
        alone = list(pool.map(lambda text: client.predict({"text": text}), texts))
    assert [answer.value["predictions"] for answer in alone] == [[row] for row in wanted]


def test_rows_have_the_columns_of_predictions(client: Client) -> None:
    (row,) = client.predict({"text": "rain"}).value["predictions"]
    assert list(row) == [name for name in prediction_columns() if name not in ("id", "text")]


@pytest.mark.parametrize(
    ("status", "body", "type_", "sentence"),
    [
        (415, '{"text": "rain"}', "text/plain", "the body must be JSON"),
        (400, '{"text": "rain"', "application/json", "not valid JSON \\(line 1\\)"),
        (400, b"\xff\xfe", "application/json", "not valid JSON"),
        (400, '{"text": NaN}', "application/json", "not valid JSON"),
        (400, "[" * 5000, "application/json", "not valid JSON"),
        (422, '["rain"]', "application/json", "an object with one field"),
        (422, "{}", "application/json", "an object with one field"),
        (422, '{"text": "a", "texts": ["b"]}', "application/json", "an object with one field"),
        (422, '{"text": null}', "application/json", "text is not a string"),
        (422, '{"texts": "rain"}', "application/json", "a list of 1 to 1,000 texts"),
        (422, '{"texts": []}', "application/json", "a list of 1 to 1,000 texts"),
        (422, json.dumps({"texts": ["a"] * 1001}), "application/json", "a list of 1 to 1,000"),
        (422, '{"texts": ["a", 1]}', "application/json", r"texts\[1\] is not a string"),
        (413, '{"text": "' + "a" * 20_000 + '"}', "application/json", "larger than 20,000 bytes"),
        (413, '{"texts": ["", "' + "a" * 5001 + '"]}', "application/json", r"texts\[1\] has 5,001"),
    ],
)
def test_bad_bodies_are_refused_with_one_sentence(
    client: Client, status: int, body: Any, type_: str, sentence: str
) -> None:
    answer = client.send("POST", "/predict", body, {"Content-Type": type_})
    assert answer.status == status, answer
    assert re.search(sentence, answer.error)


def test_a_body_without_a_length_is_limited_too(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.port)) as connection:
        head = "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        piece = b"1000\r\n" + b"a" * 0x1000 + b"\r\n"
        connection.sendall(piece * 5)
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")


def received(connection: socket.socket) -> bytes:
    """Return what a server sends until it closes the connection."""
    connection.settimeout(20)
    parts = []
    while True:
        try:
            parts.append(connection.recv(65536))
        except ConnectionResetError:
            parts.append(b"")
        if not parts[-1]:
            return b"".join(parts)


def answer_on(connection: socket.socket) -> bytes:
    """Return the next answer on a connection, which is a JSON object."""
    found = b""
    while not found.endswith(b"}"):
        found += connection.recv(65536)
    return found


def send_on(connection: socket.socket, piece: bytes) -> None:
    """Send the same again and again; the server should close the connection."""
    for _ in range(10_000):
        connection.sendall(piece)


ENDLESS = {
    "headers": b"GET /health HTTP/1.1\r\n" + b"x: y\r\n" * 200_000,
    "one header": b"GET /health HTTP/1.1\r\nx: " + b"y" * 2_000_000,
    "the address": b"GET /" + b"y" * 2_000_000,
    "blank lines": b"\r\n" * 1_000_000,
    "blank lines after a request": b"GET /health HTTP/1.1\r\n\r\n" + b"\r\n" * 1_000_000,
}


@pytest.mark.parametrize("name", ENDLESS)
def test_headers_are_limited_in_size(client: Client, name: str) -> None:
    with socket.create_connection(("127.0.0.1", client.port)) as connection:
        with suppress(ConnectionError):  # the server closes before it has read everything
            connection.sendall(ENDLESS[name])
        assert b"HTTP/1.1 431 " in received(connection) or "blank" in name or "address" in name
        with pytest.raises(ConnectionError):
            send_on(connection, b"x" * 65536)
    assert client.predict({"text": "rain"}).status == 200


def test_headers_below_the_limit_are_accepted(client: Client) -> None:
    assert client.send("GET", "/health", headers={"X-Long": "y" * 30_000}).status == 200


def test_a_body_that_nobody_reads_ends_the_connection(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.port)) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        piece = b"1000\r\n" + b"a" * 0x1000 + b"\r\n"
        with pytest.raises(ConnectionError):
            send_on(connection, piece)


def test_headers_are_limited_in_time(small_run: Path) -> None:
    with (
        serving(small_run, head_seconds=0.5, idle_seconds=3.0) as client,
        socket.create_connection(("127.0.0.1", client.port)) as silent,
        socket.create_connection(("127.0.0.1", client.port)) as slow,
        socket.create_connection(("127.0.0.1", client.port)) as kept,
        socket.create_connection(("127.0.0.1", client.port)) as early,
    ):
        begun = time.monotonic()
        kept.sendall(b"GET /health HTTP/1.1\r\n\r\n")
        assert answer_on(kept).startswith(b"HTTP/1.1 200 ")
        ended = False
        for byte in b"GET /health HTTP/1.1\r\nX: " + b"y" * 1000:
            try:
                slow.sendall(bytes([byte]))
            except ConnectionError:
                ended = True
                break
            time.sleep(0.05)
        assert ended
        assert time.monotonic() - begun < 5
        time.sleep(1)  # a connection may wait longer before its first request, and between two
        kept.sendall(b"GET /health HTTP/1.1\r\n\r\n")
        assert answer_on(kept).startswith(b"HTTP/1.1 200 ")
        kept.sendall(b"GET /health HTTP/1.1\r\nX: ")
        assert received(kept).startswith(b"HTTP/1.1 408 ")
        early.sendall(b"GET /health HTTP/1.1\r\n\r\n")
        assert answer_on(early).startswith(b"HTTP/1.1 200 ")
        assert received(silent) == b""
        assert 'path="other",status="408"' in client.get("/metrics").body.decode()


def test_a_client_that_does_not_read_is_cut_off(small_run: Path) -> None:
    with serving(small_run, seconds=1.0) as client, socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", client.port))
        # More answers than the buffers of the system hold.
        with suppress(ConnectionError, TimeoutError):
            deaf.settimeout(1)
            for _ in range(200):
                deaf.sendall(b"GET /docs/static/swagger-ui-bundle.js HTTP/1.1\r\n\r\n")
        time.sleep(3)
        # What the system holds can still be read; then the connection has ended.
        assert len(received(deaf)) < 100_000_000


def test_connections_are_limited_in_number(small_run: Path) -> None:
    with serving(small_run, connections=3) as client:
        with ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(socket.create_connection(("127.0.0.1", client.port)))
            time.sleep(0.2)
            refused = client.get("/health")
            assert (refused.status, refused.headers["retry-after"]) == (503, "1")
            assert "too many connections" in refused.error
        time.sleep(0.2)
        assert client.get("/health").status == 200


def test_texts_of_a_client_that_has_gone_leave_the_queue(
    small_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(small_run, queue=1000) as client:
        may_go = slowed(monkeypatch)
        body = json.dumps({"texts": ["rain"] * 1000}).encode()
        head = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", client.port)) as connection:
            connection.sendall(f"POST /predict HTTP/1.1\r\n{head}".encode() + body)
            while client.get("/health").value["waiting"] == 0:
                time.sleep(0.01)
        until = time.monotonic() + 10
        while client.get("/health").value["waiting"] > 256:
            assert time.monotonic() < until
            time.sleep(0.01)
        may_go.set()
        assert client.predict({"text": "rain"}).status == 200


def test_unknown_paths_and_methods_are_json_errors(client: Client) -> None:
    assert client.get("/nothing").status == 404
    assert "there is no /nothing" in client.get("/nothing").error
    wrong = client.send("DELETE", "/predict")
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
    assert "does not take DELETE" in wrong.error


def test_categories_health_and_metrics(client: Client, small_run: Path) -> None:
    listed = client.get("/categories").value
    recorded = json.loads((small_run / "categories.json").read_text())
    assert [c["name"] for c in listed["categories"]] == [c["name"] for c in recorded]
    health = client.get("/health")
    assert health.status == 200
    assert health.value == {
        "status": "ok",
        "model": listed["model"],
        "precision": "fp32",
        "waiting": 0,
        "last_reload": "none",
    }
    before = metric(client, "newfound_texts_total")
    client.predict({"texts": ["rain", "sun"]})
    page = client.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert metric(client, "newfound_texts_total") == before + 2
    assert metric(client, 'newfound_requests_total{path="/predict",status="200"}') > 0
    assert metric(client, "newfound_waiting_texts") == 0
    assert metric(client, "process_resident_memory_bytes") > 1e6
    assert listed["model"] in page.body.decode()


def metric(client: Client, name: str) -> float:
    """Return the value of a metric."""
    for line in client.get("/metrics").body.decode().splitlines():
        if line.startswith(f"{name} "):
            return float(line.split()[-1])
    raise AssertionError(name)


def test_the_documentation_needs_no_other_host(client: Client) -> None:
    page = client.get("/docs")
    assert page.status == 200
    text = page.body.decode()
    assert "//" not in re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    for path in re.findall(r'(?:href|src)="([^"]+)"', text):
        assert client.get(path).status == 200, path
    described = client.get("/openapi.json").value
    assert set(described["paths"]) == {"/predict", "/categories", "/health", "/metrics", "/reload"}
    names = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(described)))
    assert names == set(described["components"]["schemas"])
    row = described["components"]["schemas"]["Predictions"]["properties"]["predictions"]["items"]
    assert row["properties"]["probability"] == {"type": ["number", "null"]}


def slowed(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Let predictions wait for an event."""
    may_go, real = threading.Event(), Model.predict

    def predict(self: Model, texts: list[str], **more: Any) -> Predictions:
        assert may_go.wait(30)
        return real(self, texts, **more)

    monkeypatch.setattr(Model, "predict", predict)
    return may_go


def test_overload_is_refused_and_no_answer_is_lost(
    small_run: Path, task: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(small_run, queue=20) as client:
        never = client.predict({"texts": task.texts[:40]})
        assert never.status == 413  # more than the queue holds at any time
        assert never.error.startswith("the request has 40 texts, and 20 may wait")
        wanted = [client.predict({"text": text}).value for text in task.texts[:40]]
        may_go = slowed(monkeypatch)
        with ThreadPoolExecutor(40) as pool:
            sent = [pool.submit(client.predict, {"text": text}) for text in task.texts[:40]]
            while sum(answer.done() for answer in sent) == 0:
                time.sleep(0.01)
            may_go.set()
            answers = [answer.result() for answer in sent]
        assert {answer.status for answer in answers} == {200, 503}
        for answer, value in zip(answers, wanted, strict=True):
            if answer.status == 200:
                assert answer.value == value
            else:
                assert "texts are waiting already; try again later" in answer.error
                assert int(answer.headers["retry-after"]) >= 1
        assert client.predict({"text": task.texts[0]}).value == wanted[0]


def test_time_limits(small_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(small_run, seconds=0.3) as client:
        may_go = slowed(monkeypatch)
        late = client.predict({"text": "rain"})
        may_go.set()
        assert late.status == 503
        assert "not predicted in 0.3 s" in late.error
        assert late.headers["retry-after"] == "1"
        with socket.create_connection(("127.0.0.1", client.port)) as connection:
            head = "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{head}Content-Length: 100\r\n\r\n".encode() + b'{"text": ')
            assert connection.recv(4096).startswith(b"HTTP/1.1 408 ")
        assert client.predict({"text": "rain"}).status == 200


def test_a_failed_prediction_is_a_json_error(
    small_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(small_run) as client:
        with monkeypatch.context() as patch:

            def fail(*_: Any, **__: Any) -> None:
                raise RuntimeError("secret")

            patch.setattr(Model, "predict", fail)
            answer = client.predict({"text": "rain"})
            assert (answer.status, "secret" in answer.error) == (500, False)
        assert client.predict({"text": "rain"}).status == 200


def test_a_token_is_required_of_all_but_health_and_documentation(small_run: Path) -> None:
    with serving(small_run, token=TOKEN) as client:
        for wrong in ({}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": TOKEN}):
            answer = client.predict({"text": "rain"}, **wrong)
            assert answer.status == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "token" in answer.error
            for path in ("/categories", "/metrics", "/nothing"):
                assert client.get(path, **wrong).status == 401
            assert client.send("POST", "/reload", headers=wrong).status == 401
        for path in ("/health", "/docs", "/openapi.json", "/docs/static/swagger-ui.css"):
            assert client.get(path).status == 200
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert client.predict({"text": "rain"}, **right).status == 200
        assert client.get("/categories", **right).status == 200
        described = client.get("/openapi.json").value
        assert described["paths"]["/predict"]["post"]["security"] == [{"token": []}]
        assert "security" not in described["paths"]["/health"]["get"]


def test_texts_that_fit_nowhere_are_marked(small_run: Path) -> None:
    options = ModelOptions(device="cpu", outside=1.0)
    with serving(small_run, options=options) as client:
        found = client.predict({"texts": ["hello there", "rain", ""]}).value["predictions"]
    assert [row["fits_nowhere"] for row in found] == ["yes", "yes", None]


def test_bodies_are_json_whatever_the_case_of_the_type(client: Client) -> None:
    for type_ in ("Application/JSON", "application/json; charset=utf-8"):
        sent = client.send("POST", "/predict", '{"text": "rain"}', {"Content-Type": type_})
        assert sent.status == 200
    assert client.send("POST", "/predict", '{"text": "\\ud800"}', JSON).status == 200
