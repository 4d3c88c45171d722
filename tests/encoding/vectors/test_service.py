"""An embedding service that fails in all the usual ways."""

import json
import socket
import sqlite3
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.embedding_service import EmbeddingService, Reply, answer, good, vector

from newfound import InputError
from newfound.encoding.vectors import service, service_request
from newfound.encoding.vectors.address import parse_address
from newfound.encoding.vectors.service import ServiceEncoder

KEY = "sk-very-secret-0123456789"
TEXTS = [f"text number {i}" for i in range(10)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses, small batches and a limit of a second."""
    monkeypatch.setattr(service, "PAUSE", 0.01)
    monkeypatch.setattr(service, "BATCH", 4)
    monkeypatch.setattr(service_request, "SECONDS", 1.0)


@pytest.fixture
def encoder(embedding_service: EmbeddingService) -> ServiceEncoder:
    return ServiceEncoder(parse_address(embedding_service.address))


def expected(texts: list[str]) -> np.ndarray:
    return np.array([vector(text) for text in texts], np.float32)


def as_json(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Reply]:
    """A reply with a changed answer."""

    def reply(body: dict[str, Any]) -> Reply:
        value = answer(body["input"])
        return Reply(body=json.dumps(change(value) or value).encode())

    return reply


def test_texts_are_sent_once_in_batches(
    encoder: ServiceEncoder, embedding_service: EmbeddingService
) -> None:
    done: list[int] = []
    texts = [*TEXTS, TEXTS[0]]
    assert np.array_equal(encoder.encode(texts, done.append), expected(texts))
    assert sum(done) == len(texts)
    assert sorted(embedding_service.texts) == sorted(TEXTS)
    assert [len(body["input"]) for body in embedding_service.asked[:1]] == [4]
    assert {body["model"] for body in embedding_service.asked} == {"tiny"}
    assert set(embedding_service.paths) == {"/v1/embeddings"}
    assert encoder.notes() == [
        f"10 texts were sent to tiny at 127.0.0.1:{embedding_service.server_port} (30 tokens); "
        "1 vector came from the store on disk"
    ]


def test_stored_vectors_are_not_bought_again(
    encoder: ServiceEncoder, embedding_service: EmbeddingService
) -> None:
    encoder.encode(TEXTS)
    sent = len(embedding_service.asked)
    later = ServiceEncoder(parse_address(embedding_service.address))
    assert np.array_equal(later.encode(TEXTS[::-1]), expected(TEXTS[::-1]))
    assert len(embedding_service.asked) == sent
    assert later.notes() == []
    later.encode([*TEXTS, "a new text"])
    assert embedding_service.texts[len(TEXTS) :] == ["a new text"]
    other = ServiceEncoder(parse_address(embedding_service.address + "-2"))
    other.encode(TEXTS[:1])  # another model has vectors of its own
    assert embedding_service.texts[-1] == TEXTS[0]


FAULTS: dict[str, Callable[[dict[str, Any]], Reply]] = {
    "429": lambda body: Reply(429, headers={"Retry-After": "0"}),
    "429 without a pause": lambda body: Reply(429),
    "500": lambda body: Reply(500, b"oops"),
    "503": lambda body: Reply(503),
    "slow headers": lambda body: Reply(before=2.0),
    "slow body": lambda body: Reply(body=good(body).body, between=0.2),
    "truncated JSON": lambda body: Reply(body=good(body).body[:-10]),
    "connection lost": lambda body: Reply(body=good(body).body[:-10], missing=10),
    "not JSON": lambda body: Reply(body=b"<html>"),
    "no data": lambda body: Reply(body=b"{}"),
    "a list": lambda body: Reply(body=b"[]"),
    "too few vectors": as_json(lambda value: value["data"].pop() and None),
    "too many vectors": as_json(lambda value: value["data"].append(value["data"][0])),
    "one index twice": as_json(lambda value: value["data"][1].update(index=0)),
    "an index too large": as_json(lambda value: value["data"][0].update(index=99)),
    "NaN": as_json(lambda value: value["data"][1]["embedding"].__setitem__(0, float("nan"))),
    "null": as_json(lambda value: value["data"][1]["embedding"].__setitem__(0, None)),
    "zero vector": as_json(lambda value: value["data"][1].update(embedding=[0.0] * 8)),
    "uneven vectors": as_json(lambda value: value["data"][1]["embedding"].pop() and None),
    "words": as_json(lambda value: value["data"][1].update(embedding="abc")),
}


@pytest.mark.parametrize("name", FAULTS)
def test_requests_are_repeated_after_a_fault(
    name: str, encoder: ServiceEncoder, embedding_service: EmbeddingService
) -> None:
    embedding_service.faults = [FAULTS[name]]
    assert np.array_equal(encoder.encode(TEXTS[:3]), expected(TEXTS[:3]))
    assert len(embedding_service.asked) == 2


@pytest.mark.parametrize(
    "name", ["429", "500", "truncated JSON", "too few vectors", "NaN", "uneven vectors"]
)
def test_lasting_fault_ends_with_a_sentence_and_keeps_what_is_paid(
    name: str, encoder: ServiceEncoder, embedding_service: EmbeddingService
) -> None:
    encoder.encode(TEXTS[:5])
    embedding_service.faults = [FAULTS[name]] * 20
    with pytest.raises(InputError, match=r"failed after 6 tries: .*the same command goes on"):
        encoder.encode([TEXTS[0], TEXTS[5]])
    embedding_service.faults = []
    before = len(embedding_service.texts)
    assert np.array_equal(encoder.encode(TEXTS[:6]), expected(TEXTS[:6]))
    assert embedding_service.texts[before:] == [TEXTS[5]]


def test_batches_that_arrived_before_a_fault_are_stored(
    encoder: ServiceEncoder, embedding_service: EmbeddingService
) -> None:
    def refuse_eight(body: dict[str, Any]) -> Reply:
        return Reply(404) if TEXTS[8] in body["input"] else good(body)

    embedding_service.reply = refuse_eight
    with pytest.raises(InputError, match="HTTP error 404; check the address and the model"):
        encoder.encode(TEXTS)
    embedding_service.reply = good
    embedding_service.asked.clear()
    assert np.array_equal(encoder.encode(TEXTS), expected(TEXTS))
    assert embedding_service.texts == TEXTS[8:]


def test_vectors_out_of_order_are_put_in_order(
    encoder: ServiceEncoder, embedding_service: EmbeddingService
) -> None:
    embedding_service.reply = as_json(lambda value: value["data"].reverse())
    assert np.array_equal(encoder.encode(TEXTS), expected(TEXTS))


def test_answer_without_index_and_usage_is_read_in_order(
    encoder: ServiceEncoder, embedding_service: EmbeddingService
) -> None:
    embedding_service.reply = as_json(
        lambda value: {"data": [{"embedding": item["embedding"]} for item in value["data"]]}
    )
    assert np.array_equal(encoder.encode(TEXTS), expected(TEXTS))
    assert "token" not in encoder.notes()[0]


def test_pause_is_the_one_that_the_service_asks_for(
    encoder: ServiceEncoder, embedding_service: EmbeddingService
) -> None:
    embedding_service.faults = [lambda body: Reply(429, headers={"Retry-After": "0.5"})]
    encoder.encode(TEXTS[:1])
    first, second = embedding_service.times
    assert 0.5 <= second - first < 5
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    assert 0 < (service_request._retry_after(soon) or 0) <= 2
    assert service_request._retry_after("nonsense") is None
    assert service_request._retry_after("-3") == 0


def test_pauses_grow(
    monkeypatch: pytest.MonkeyPatch, encoder: ServiceEncoder, embedding_service: EmbeddingService
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(encoder._stop, "wait", lambda pause: pauses.append(pause))
    embedding_service.faults = [FAULTS["500"]] * 5
    encoder.encode(TEXTS[:1])
    assert len(pauses) == 5
    assert all(1.3 * a < b < 3.1 * a for a, b in pairwise(pauses))


def test_pause_of_an_hour_is_reported(
    encoder: ServiceEncoder, embedding_service: EmbeddingService
) -> None:
    embedding_service.reply = lambda body: Reply(429, headers={"Retry-After": "3600"})
    with pytest.raises(InputError, match="asks to wait 3,600 seconds; try again later"):
        encoder.encode(TEXTS)
    assert len(embedding_service.asked) == 1


def test_service_that_is_down_is_reported_soon(encoder: ServiceEncoder) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    down = ServiceEncoder(parse_address(f"http://127.0.0.1:{port}/v1#tiny"))
    begun = time.monotonic()
    with pytest.raises(InputError, match=r"failed after 2 tries: no connection \(ConnectionRef"):
        down.encode(TEXTS)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(401), "401, it needs a key, and there is none in NEWFOUND_EMBEDDING_KEY"),
        (Reply(403), "403, it needs a key"),
        (Reply(404, b'{"error": {"message": "no such model"}}'), r"404 \(no such model\); check"),
        (Reply(302, headers={"Location": "http://127.0.0.1:1/"}), "redirects to another address"),
    ],
)
def test_final_errors_are_not_repeated(
    encoder: ServiceEncoder, embedding_service: EmbeddingService, reply: Reply, message: str
) -> None:
    embedding_service.reply = lambda body: reply
    with pytest.raises(InputError, match=message):
        encoder.encode(TEXTS)
    assert len(embedding_service.asked) == 1


def test_key_is_sent_and_never_shown(
    encoder: ServiceEncoder,
    embedding_service: EmbeddingService,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("NEWFOUND_EMBEDDING_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-service")
    encoder.encode(TEXTS)
    assert {sent["Authorization"] for sent in embedding_service.headers} == {f"Bearer {KEY}"}
    assert KEY not in json.dumps([encoder.to_dict(), encoder.notes(), encoder.name])
    echo = json.dumps({"error": {"message": f"bad key {KEY}"}}).encode()
    for status in (401, 404, 400, 500):
        embedding_service.reply = lambda body, status=status: Reply(status, echo)
        with pytest.raises(InputError) as caught:
            encoder.encode(["another text"])
        assert KEY not in str(caught.value)
    monkeypatch.setenv("NEWFOUND_EMBEDDING_KEY", f"{KEY}\nX: y")
    with pytest.raises(InputError, match="the key in NEWFOUND_EMBEDDING_KEY cannot be sent") as bad:
        encoder.encode(["another text"])
    assert KEY not in str(bad.value)
    assert not any(KEY.encode() in file.read_bytes() for file in tmp_path.rglob("*.sqlite"))


def test_openai_key_is_sent_only_to_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEWFOUND_EMBEDDING_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert parse_address("https://api.openai.com/v1#m").key() == KEY
    assert parse_address("https://api.openai.com.evil.org/v1#m").key() is None
    monkeypatch.setenv("NEWFOUND_EMBEDDING_KEY", "other")
    assert parse_address("https://api.openai.com/v1#m").key() == "other"


def test_refused_batches_are_split_and_long_texts_are_cut(
    encoder: ServiceEncoder, embedding_service: EmbeddingService
) -> None:
    def limited(body: dict[str, Any]) -> Reply:
        if len(body["input"]) > 2:
            return Reply(422)
        if any(len(text) > 900 for text in body["input"]):
            return Reply(400, b'{"error": "too long"}')
        return good(body)

    embedding_service.reply = limited
    long = "word " * 600  # 3,000 characters
    found = encoder.encode([*TEXTS[:3], long])
    assert np.array_equal(found[:3], expected(TEXTS[:3]))
    assert np.array_equal(found[3:], expected([long[:750]]))
    assert "1 text was too long" in encoder.notes()[1]
    embedding_service.reply = lambda body: Reply(400, b'{"error": "no such thing"}')
    with pytest.raises(InputError, match=r"refuses the text 'another': .*\(no such thing\)"):
        encoder.encode(["another"])


def test_changed_dimension_is_refused_and_not_stored(
    encoder: ServiceEncoder, embedding_service: EmbeddingService
) -> None:
    encoder.encode(TEXTS[:2])
    embedding_service.reply = lambda body: Reply(
        body=json.dumps(answer(body["input"], width=5)).encode()
    )
    for again in (encoder, ServiceEncoder(encoder.address)):
        with pytest.raises(InputError, match="now gives vectors of 5 dimensions, and gave 8 befor"):
            again.encode(TEXTS)
    embedding_service.reply = good
    assert np.array_equal(encoder.encode(TEXTS), expected(TEXTS))


def test_prompt_is_sent_before_each_text(embedding_service: EmbeddingService) -> None:
    encoder = ServiceEncoder(parse_address(embedding_service.address), prompt="query: ")
    encoder.encode(["a card"])
    assert embedding_service.texts == ["query: a card"]
    assert encoder.fingerprint != ServiceEncoder(encoder.address).fingerprint
    assert ServiceEncoder.from_dict(encoder.to_dict()).fingerprint == encoder.fingerprint


def test_damaged_rows_are_bought_again_and_a_damaged_store_is_reported(
    encoder: ServiceEncoder, embedding_service: EmbeddingService, tmp_path: Path
) -> None:
    encoder.encode(TEXTS[:3])
    (file,) = (tmp_path / "stored-vectors").glob("*.sqlite")
    with sqlite3.connect(file) as rows:
        first = rows.execute("SELECT text FROM vectors LIMIT 1").fetchone()[0]
        rows.execute("UPDATE vectors SET vector = zeroblob(32) WHERE text = ?", (first,))
    rows.close()
    assert np.array_equal(encoder.encode(TEXTS[:3]), expected(TEXTS[:3]))
    assert len(embedding_service.texts) == 4
    file.write_bytes(b"not a database" * 1000)
    with pytest.raises(InputError, match=r"is damaged .* delete it"):
        encoder.encode(TEXTS[:3])


def test_store_that_cannot_be_written_is_reported(
    encoder: ServiceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NEWFOUND_EMBEDDING_CACHE", str(tmp_path / "file" / "folder"))
    with pytest.raises(InputError, match="name another folder in NEWFOUND_EMBEDDING_CACHE"):
        encoder.encode(TEXTS)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("https://host/v1", "needs the name of a model after #"),
        ("https:///v1#m", "not a valid URL"),
        ("https://host:99999/v1#m", "not a valid URL"),
        ("https://host/v1#a model", "not a valid URL"),
        ("http://example.com/v1#m", "unencrypted; give an address with https"),
        ("http://127.0.0.1.evil.org/v1#m", "unencrypted"),
        ("https://user:secret@host/v1#m", "no user name, password or query"),
        ("https://host/v1?key=secret#m", "no user name, password or query"),
    ],
)
def test_invalid_addresses_are_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_address(name)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("https://Host/v1/#m", "https://host/v1/embeddings"),
        ("https://host/v1/embeddings#m", "https://host/v1/embeddings"),
        ("http://localhost:8080#m", "http://localhost:8080/embeddings"),
        ("http://[::1]:80/v1#m", "http://[::1]:80/v1/embeddings"),
        ("HTTPS://host/v1#org/m:1", "https://host/v1/embeddings"),
    ],
)
def test_addresses_are_completed(name: str, url: str) -> None:
    address = parse_address(name)
    assert address.url == url
    assert parse_address(str(address)) == address
