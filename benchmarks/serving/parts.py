"""The measurements, one function each."""

import asyncio
import json
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.serving.checking import Clients
from benchmarks.serving.ground import Ground, Served, answers_of, python_module, serving
from benchmarks.serving.load import put_load, write_bodies
from newfound.errors import InputError

REPEATS = 2
SECONDS = 30  # of a measurement of throughput
LATENCY_SECONDS = 12  # of a measurement of latency
CONNECTIONS = 256
SHARES = (0.1, 0.5, 0.9)  # of the throughput, at which the latency is measured
REQUESTS = 200_000  # over which the memory is followed
RELOADS = 20


def measure_speed(ground: Ground) -> dict[str, Any]:
    """Measure the throughput beside that of the bare encoder, and latencies at shares of it."""
    bodies = write_bodies(ground.folder / "bodies.jsonl", ground.texts)
    bare, served, cpu = [], [], []
    texts = ground.folder / "texts.json"
    texts.write_text(json.dumps(ground.texts))
    for _ in range(REPEATS):
        bare.append(_bare(ground.runs["first"], texts))
        with serving(ground.runs["first"]) as server:
            put_load(server.url, bodies, connections=1, seconds=1)
            used = server.metric("process_cpu_seconds_total")
            load = put_load(server.url, bodies, connections=CONNECTIONS, seconds=SECONDS)
            cpu.append(round((server.metric("process_cpu_seconds_total") - used) / SECONDS, 2))
            server.wait_until_idle()
        served.append(load)
    throughput = statistics.median(load.per_second for load in served)
    encoder = statistics.median(bare)
    latencies = {}
    with serving(ground.runs["first"]) as server:
        for share in SHARES:
            latencies[f"{share:.0%}"] = _latency(server, bodies, share * throughput)
    return {
        "texts": len(ground.texts),
        "connections": CONNECTIONS,
        "encoder": {"texts_per_second": encoder, "runs": bare},
        "server": {
            "texts_per_second": throughput,
            "runs": [load.per_second for load in served],
            "cores_used": cpu,
            "failed": sum(load.failed for load in served),
            "p50_ms": statistics.median(load.p50_ms for load in served),
            "p99_ms": statistics.median(load.p99_ms for load in served),
        },
        "ratio": round(throughput / encoder, 3),
        "latencies": latencies,
    }


def _bare(run: Path, texts: Path) -> float:
    """Return the texts per second of the encoder alone, in a process of its own."""
    command = python_module("benchmarks.serving.bare", str(run), str(texts))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return round(float(done.stdout), 1)


def _latency(server: Served, bodies: Path, rate: float) -> dict[str, float]:
    """Return the latency at a rate of requests per second that is nearly reached."""
    # A connection sends a request per latency and pause, and the latency depends on the load.
    seconds = 0.0
    for duration in (4, 4, LATENCY_SECONDS):
        server.wait_until_idle()
        pause = max(0.0, CONNECTIONS / rate - seconds)
        load = put_load(server.url, bodies, connections=CONNECTIONS, seconds=duration, pause=pause)
        seconds = load.mean_ms / 1000
    return {
        "wanted_per_second": round(rate, 1),
        "per_second": load.per_second,
        "p50_ms": load.p50_ms,
        "p99_ms": load.p99_ms,
        "failed": load.failed,
    }


def measure_memory(ground: Ground) -> dict[str, Any]:
    """Follow the memory of a server with a tiny encoder over many requests."""
    bodies = write_bodies(ground.folder / "bodies.jsonl", ground.texts)
    followed: list[tuple[int, float]] = []
    failed = 0
    with serving(ground.runs["tiny"]) as server:
        while not followed or followed[-1][0] < REQUESTS:
            load = put_load(server.url, bodies, connections=CONNECTIONS, seconds=10)
            failed += load.failed
            done = int(server.metric("newfound_texts_total"))
            memory = server.metric("process_resident_memory_bytes") / 2**20
            followed.append((done, round(memory, 1)))
    return {
        "encoder": "a random BERT with one layer",
        "requests": followed[-1][0],
        "failed": failed,
        "followed": followed,
        "first_mb": followed[0][1],
        "last_mb": followed[-1][1],
        "per_second": round(followed[-1][0] / (10 * len(followed)), 1),
    }


def measure_overload(ground: Ground) -> dict[str, Any]:
    """Send more than the server can answer, and compare all answers."""
    texts = ground.texts[:500]
    wanted = answers_of(ground.runs["first"], texts)
    with serving(ground.runs["first"], "--queue", "64") as server:
        clients = Clients(server.port, texts, wanted)

        async def scene() -> None:
            asking = asyncio.create_task(clients.run(400))
            await asyncio.sleep(LATENCY_SECONDS)
            clients.stop()
            await asking

        asyncio.run(scene())
    return _counted(clients, queue=64, connections=400)


def measure_reloads(ground: Ground) -> dict[str, Any]:
    """Reload another run again and again under load, and compare all answers."""
    texts = ground.texts[:500]
    wanted: dict[str, list[Any]] = {}
    for name in ("first", "second"):
        wanted |= answers_of(ground.runs[name], texts)
    link = ground.folder / "current"
    _point(link, ground.runs["first"])
    with serving(link) as server:
        clients = Clients(server.port, texts, wanted)

        async def scene() -> None:
            asking = asyncio.create_task(clients.run(32))
            for i in range(RELOADS):
                _point(link, ground.runs[("second", "first")[i % 2]])
                before = (await asyncio.to_thread(server.health))["model"]
                if i % 4 < 2:
                    await asyncio.to_thread(server.send, "POST", "/reload")
                else:
                    server.process.send_signal(signal.SIGHUP)
                while (await asyncio.to_thread(server.health))["model"] == before:
                    await asyncio.sleep(0.1)
            clients.stop()
            await asking

        asyncio.run(asyncio.wait_for(scene(), 300))
    return _counted(clients, reloads=RELOADS, models=len(clients.counts.models), connections=32)


def _counted(clients: Clients, **more: int) -> dict[str, Any]:
    """Return what clients received."""
    counts = {k: v for k, v in asdict(clients.counts).items() if k != "models"}
    return {**counts, **more}


def _point(link: Path, folder: Path) -> None:
    """Let a link point to another run, in one step."""
    temporary = link.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(folder.resolve())
    temporary.replace(link)


def measure_schema(ground: Ground) -> dict[str, Any]:
    """Let schemathesis send requests by the OpenAPI description, and count what it finds."""
    with serving(ground.runs["tiny"]) as server:
        begun = time.perf_counter()
        found = run_schemathesis(server.url)
        found["seconds"] = round(time.perf_counter() - begun, 1)
    return found


def run_schemathesis(url: str, *flags: str) -> dict[str, Any]:
    """Run schemathesis against a server; return how many requests it sent and what it found."""
    program = shutil.which("schemathesis", path=str(Path(sys.executable).parent))
    if program is None:
        raise InputError("schemathesis is not installed: pip install schemathesis")
    command = [program, "run", f"{url}/openapi.json", "--checks", "all", "--no-color"]
    done = subprocess.run(
        [*command, "--seed", "1", *flags], capture_output=True, text=True, check=False, timeout=300
    )
    cases = re.search(r"(\d+) generated", done.stdout)
    issues = re.search(r"(\d+) issues? found", done.stdout)
    found = int(issues[1]) if issues else 0
    return {
        "cases": int(cases[1]) if cases else 0,
        "found": max(found, int(done.returncode != 0)),
        "output": done.stdout if done.returncode else "",
    }


PARTS: dict[str, Callable[[Ground], dict[str, Any]]] = {
    "speed": measure_speed,
    "memory": measure_memory,
    "overload": measure_overload,
    "reloads": measure_reloads,
    "schema": measure_schema,
}
