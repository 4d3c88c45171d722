"""Load from wrk: as many requests as possible, or at a given rate."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from newfound.errors import InputError

# Each connection sends one text per request, and waits before the next one if a rate is wanted.
# The pauses are drawn from an exponential distribution, so that arrivals come at random.
SCRIPT = """
local bodies = {}
for line in io.lines(os.getenv("BODIES")) do bodies[#bodies + 1] = line end
local pause = tonumber(os.getenv("PAUSE"))
local place = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
function request()
  place = place % #bodies + 1
  return wrk.format(nil, nil, nil, bodies[place])
end
if pause > 0 then
  function delay() return math.floor(-pause * math.log(1 - math.random()) + 0.5) end
end
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests": %d, "microseconds": %d, "errors": %d, "refused": %d, ' ..
    '"mean_ms": %.3f, "p50_ms": %.3f, "p99_ms": %.3f}\\n',
    summary.requests, summary.duration, e.connect + e.read + e.write + e.timeout, e.status,
    latency.mean / 1000, latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
"""


@dataclass(frozen=True)
class Load:
    """What wrk measured.

    Attributes
    ----------
    per_second : float
        Requests per second.
    requests : int
    failed : int
        Requests without an answer, or with another status than 200.
    mean_ms, p50_ms, p99_ms : float
        Latency in milliseconds.
    """

    per_second: float
    requests: int
    failed: int
    mean_ms: float
    p50_ms: float
    p99_ms: float


def write_bodies(path: Path, texts: Sequence[str]) -> Path:
    """Write one body per line."""
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def put_load(url: str, bodies: Path, *, connections: int, seconds: int, pause: float = 0.0) -> Load:
    """Send requests to /predict from one thread of wrk.

    Parameters
    ----------
    url : str
        Address of the server.
    bodies : Path
        One body per line.
    connections : int
    seconds : int
    pause : float
        Mean seconds that a connection waits between an answer and the next request.

    Returns
    -------
    Load
    """
    if shutil.which("wrk") is None:
        raise InputError("the load comes from wrk, which is not installed: apt-get install wrk")
    script = bodies.with_suffix(".lua")
    script.write_text(SCRIPT)
    command = ["wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s", "--timeout", "60s"]
    done = subprocess.run(
        [*command, "-s", str(script), f"{url}/predict"],
        capture_output=True,
        text=True,
        check=True,
        timeout=seconds + 90,
        env={"BODIES": str(bodies), "PAUSE": str(1000 * pause), "PATH": "/usr/bin:/bin"},
    )
    found = json.loads(done.stdout.split("RESULT ")[1])
    return Load(
        per_second=round(found["requests"] / found["microseconds"] * 1e6, 1),
        requests=found["requests"],
        failed=found["errors"] + found["refused"],
        mean_ms=found["mean_ms"],
        p50_ms=round(found["p50_ms"], 1),
        p99_ms=round(found["p99_ms"], 1),
    )
