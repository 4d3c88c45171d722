"""The server of the review: who may use it, and that no decision is lost."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_run import write_fake_run

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from support.review_server import TOKEN, Served, served

from newfound.decisions import Decision, append, read_decided, read_log
from newfound.errors import InputError
from newfound.review.splitting import Splitter, two_parts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_fake_run(tmp_path / "run", 200, 4, 4, 0)


@pytest.fixture
def review(folder: Path) -> Iterator[Served]:
    with served(folder) as one:
        yield one


ACCEPT: dict[str, Any] = {"decision": "accept", "category": "c5"}


def lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / "decisions.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# Who may use it.


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/?token=wrong", {"x-newfound-token": ""}),
        ("/", {"x-newfound-token": ""}),
        ("/state", {"x-newfound-token": "wrong"}),
        ("/digest", {"x-newfound-token": "sécret"}),
        (f"/?token={TOKEN}", {"host": "example.org"}),
        (f"/?token={TOKEN}", {"host": "127.0.0.1:1"}),
    ],
)
def test_requests_without_token_or_for_another_host_are_refused(
    review: Served, path: str, headers: dict[str, str]
) -> None:
    status, value, _ = review.ask(path, headers=headers)
    assert status == 403
    assert set(value) == {"error"}


@pytest.mark.parametrize("origin", ["http://example.org", "null", "http://127.0.0.1:1", ""])
def test_decisions_from_other_pages_are_refused(review: Served, folder: Path, origin: str) -> None:
    body = {"decisions": [ACCEPT], "expected": review.ask("/digest")[1]["digest"]}
    assert review.ask("/decide", body, {"origin": origin})[0] == 403
    assert review.ask("/decide", body, {"content-type": "text/plain"})[0] == 400
    assert lines(folder) == []
    assert review.ask("/decide", body)[0] == 200


def test_page_has_a_policy_and_is_not_cached(review: Served) -> None:
    status, page, headers = review.ask(f"/?token={TOKEN}", headers={"x-newfound-token": ""})
    assert status == 200
    assert "connect-src 'self'; base-uri 'none'" in page
    assert headers["cache-control"] == "no-store"
    assert headers["content-security-policy"] == "frame-ancestors 'none'"
    assert headers["referrer-policy"] == "no-referrer"
    assert TOKEN not in page


def test_server_listens_on_this_machine_only(review: Served) -> None:
    other = "127.0.0.2"  # as good as any other address of this machine
    with pytest.raises(OSError):  # noqa: PT011
        http.client.HTTPConnection(other, review.port, timeout=2).request("GET", "/")


# Decisions.


def test_acknowledged_decision_is_on_disk_and_shown(review: Served, folder: Path) -> None:
    status, state = review.decide(ACCEPT, {"decision": "rename", "category": "c6", "name": "New"})
    assert status == 200
    first, second = lines(folder)
    assert (first["decision"], first["category"], first["author"]) == ("accept", "c5", "Ada")
    assert second["name"] == "New"
    assert "time" in first
    by_id = {category["id"]: category for category in state["categories"]}
    assert by_id["c5"]["status"] == "accepted"
    assert by_id["c6"]["name"] == "New"
    assert state["review"]["progress"]["decided"] == 1
    assert state["review"]["digest"] == read_log(folder).digest
    assert [line["line"] for line in state["review"]["lines"]] == [2, 1]
    result, _, problems = read_decided(folder)
    assert problems == ()
    assert state["category"] == result.assigned.tolist()


def test_second_tab_does_not_overwrite_and_gets_the_new_state(review: Served, folder: Path) -> None:
    old = review.ask("/digest")[1]["digest"]
    assert review.decide(ACCEPT, expected=old)[0] == 200
    status, state = review.decide({"decision": "reject", "category": "c5"}, expected=old)
    assert status == 409
    assert "have changed since" in state["error"]
    assert [line["decision"] for line in lines(folder)] == ["accept"]
    by_id = {category["id"]: category for category in state["categories"]}
    assert by_id["c5"]["status"] == "accepted"
    assert review.decide(ACCEPT, expected=state["review"]["digest"])[0] == 200


def test_decisions_of_other_programs_are_seen(review: Served, folder: Path) -> None:
    before = review.ask("/digest")[1]
    append(folder, [Decision("accept", category="c6", author="Ben")])
    assert review.ask("/digest")[1] != before
    state = review.ask("/state")[1]
    assert "Ben" in state["review"]["lines"][0]["text"]


@pytest.mark.parametrize(
    "decision",
    [
        {"decision": "accept", "category": "c99"},
        {"decision": "accept"},
        {"decision": "reject", "category": "c1"},
        {"decision": "move", "texts": ["nobody"], "into": "c5"},
        {"decision": "rename", "category": "c5", "name": " "},
        {"decision": "explode"},
        "accept",
        None,
    ],
)
def test_invalid_decision_is_refused_whole(review: Served, folder: Path, decision: Any) -> None:
    status, value = review.decide(ACCEPT, decision)
    assert status == 400
    assert "\n" not in value["error"]
    assert lines(folder) == []


@pytest.mark.parametrize("body", [[], {}, {"decisions": []}, {"decisions": 3, "expected": "x"}])
def test_invalid_request_is_refused(review: Served, folder: Path, body: Any) -> None:
    assert review.ask("/decide", body)[0] == 400
    assert lines(folder) == []


def test_undo_takes_the_last_decision_back(review: Served, folder: Path) -> None:
    review.decide({"decision": "reject", "category": "c7"})
    status, state = review.decide({"decision": "undo", "line": 1})
    assert status == 200
    assert "c7" in {category["id"] for category in state["categories"]}
    assert state["review"]["last"] is None
    assert [line["undone"] for line in state["review"]["lines"]] == [False, True]


def test_questions_come_in_words_and_change_with_decisions(review: Served) -> None:
    state = review.ask("/state")[1]
    asked = state["review"]["questions"]
    names = {category["id"]: category["name"] for category in state["categories"]}
    for question in asked:
        assert f"\u201c{names[question['category']]}\u201d" in question["text"]
        assert question["text"].endswith("?")
        assert question["texts"]
    first = next(question for question in asked if question["kind"] == "category")
    _, state = review.decide({"decision": "reject", "category": first["category"]})
    left = [question["key"] for question in state["review"]["questions"]]
    assert first["key"] not in left


def test_many_writers_lose_nothing(review: Served, folder: Path) -> None:
    saved: list[str] = []

    def write(who: int) -> None:
        for number in range(4):
            text = f"{who}-{number}"
            while review.decide({"decision": "note", "text": text})[0] == 409:
                pass
            saved.append(text)

    threads = [threading.Thread(target=write, args=(who,)) for who in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(line["text"] for line in lines(folder)) == sorted(saved)


def test_replaced_run_is_read_again(review: Served, folder: Path, tmp_path: Path) -> None:
    before = review.ask("/digest")[1]["run"]
    write_fake_run(folder, 120, 3, 2, 5)
    assert review.ask("/digest")[1]["run"] != before
    state = review.ask("/state")[1]
    assert len(state["category"]) == 120
    assert state["review"]["run"] != before


# Proposals to split.


def test_two_parts_separates_two_clouds() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(0, 0.1, (20, 3)), rng.normal(5, 0.1, (30, 3))])
    part = two_parts(points)
    assert len(set(part[:20])) == len(set(part[20:])) == 1
    assert part[0] != part[-1]
    with pytest.raises(InputError, match="the same"):
        two_parts(np.ones((5, 2)))


def test_proposal_names_all_texts_of_the_category_once(review: Served, folder: Path) -> None:
    status, value, _ = review.ask("/split", {"category": "c5"})
    assert status == 200
    result = read_decided(folder)[0]
    at = result.position["c5"]
    wanted = [result.corpus.ids[row] for row in np.flatnonzero(result.assigned == at)]
    assert sorted(id_ for part in value["parts"] for id_ in part) == sorted(wanted)
    parts = [{"texts": part} for part in value["parts"]]
    assert review.decide({"decision": "split", "category": "c5", "parts": parts})[0] == 200
    assert review.ask("/split", {"category": "c5"})[0] == 400  # it is gone


def test_proposal_uses_the_features_of_the_model(small_run: Path) -> None:
    splitter = Splitter(small_run)
    splitter.start()
    try:
        features = splitter._features(["my card is lost", "rain and sun", "my card is lost"])
        assert features is not None
        assert features[0] == pytest.approx(features[2])
        assert not np.allclose(features[0], features[1])
    finally:
        splitter.close()
    assert splitter._features(["a"]) is None


# The command.


@contextmanager
def started(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """Run the command; yield its process, its port and its token."""
    command = [sys.executable, "-m", "newfound", "review", str(folder), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", process.stdout.readline())
        assert found is not None
        yield process, int(found[1]), found[2]
    finally:
        process.kill()
        process.communicate()


def send(port: int, token: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {
        "x-newfound-token": token,
        "origin": f"http://127.0.0.1:{port}",
        "content-type": "application/json",
    }
    content = None if body is None else json.dumps(body)
    connection.request("GET" if body is None else "POST", path, content, headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_acknowledged_decision_survives_a_kill_and_ctrl_c_ends_cleanly(folder: Path) -> None:
    with started(folder) as (process, port, token):
        digest = send(port, token, "/digest")[1]["digest"]
        status, _ = send(port, token, "/decide", {"decisions": [ACCEPT], "expected": digest})
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert status == 200
    assert [line["decision"] for line in lines(folder)] == ["accept"]

    with started(folder) as (process, port, token):
        assert send(port, token, "/state")[1]["review"]["progress"]["decided"] == 1
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
        assert process.returncode == 0
    assert "has 1 line." in out
