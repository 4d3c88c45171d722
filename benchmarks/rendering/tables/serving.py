"""The tables of `newfound serve` under load."""

from collections.abc import Sequence
from typing import Any

from newfound.bench.lines import Line
from newfound.bench.rows import markdown


def serving_lines(lines: Sequence[Line]) -> dict[str, Line]:
    """Return the last line of each part that `benchmarks.serving` measured."""
    return {line["table"]: line for line in lines if line.get("kind") == "serving"}


def serving_table(lines: Sequence[Line]) -> str:
    """Return what was measured, each with its goal."""
    found = serving_lines(lines)
    if not found:
        return "No measurements yet.\n"
    parts = []
    if "speed" in found:
        parts.append(_speed(found["speed"]))
    rows = [row for name, make in CHECKS.items() if name in found for row in make(found[name])]
    if rows:
        parts.append(markdown(["check", "goal", "measured"], rows))
    return "\n".join(parts)


def _speed(line: Line) -> str:
    """Return the throughput and the latencies."""
    encoder, server = line["encoder"]["texts_per_second"], line["server"]
    told = (
        f"{line['texts']:,} texts of BANKING, one per request, with MiniLM in fp32 on "
        f"{line['device']}; wrk with {line['connections']} connections on the same cores. The bare "
        f"encoder: {encoder:,.0f} texts per second in one process. The service: "
        f"{server['texts_per_second']:,.0f}, that is {line['ratio']:.2f} of it (goal: 0.85).\n"
    )
    rows = [
        [
            _share(found["per_second"] / server["texts_per_second"], share),
            f"{found['per_second']:,.0f}",
            f"{found['p50_ms']:,.0f}",
            f"{found['p99_ms']:,.0f}",
        ]
        for share, found in line["latencies"].items()
    ]
    rows.append(
        [
            f"as many as {line['connections']} connections can send",
            f"{server['texts_per_second']:,.0f}",
            f"{server['p50_ms']:,.0f}",
            f"{server['p99_ms']:,.0f}",
        ]
    )
    header = ["load", "requests per second", "p50, ms", "p99, ms"]
    return told + "\n" + markdown(header, rows)


def _share(reached: float, wanted: str) -> str:
    """Return the share of the throughput that the load reached, and the one that was wanted.

    wrk waits between requests, so that it sends fewer when answers come later.

    Examples
    --------
    >>> _share(0.504, "50%"), _share(0.853, "90%")
    ('50% of the throughput', '85% of the throughput (wanted: 90%)')
    """
    told = f"{reached:.0%} of the throughput"
    return told if f"{reached:.0%}" == wanted else f"{told} (wanted: {wanted})"


def _memory(line: Line) -> list[list[str]]:
    growth = line["last_mb"] - line["first_mb"]
    return [
        [
            f"memory over {line['requests']:,} requests (encoder: {line['encoder']})",
            "flat",
            f"{line['first_mb']:,.0f} MiB after the first {line['followed'][0][0]:,}, "
            f"{line['last_mb']:,.0f} MiB at the end ({growth:+.0f} MiB)",
        ]
    ]


def _overload(line: Line) -> list[list[str]]:
    return [
        [
            f"overload: {line['connections']} connections, a queue of {line['queue']} texts",
            "no wrong or missing answer",
            f"{line['right']:,} right, {line['refused']:,} refused with 503 and Retry-After, "
            f"{line['wrong']} wrong, {line['dropped']} missing",
        ]
    ]


def _reloads(line: Line) -> list[list[str]]:
    return [
        [
            f"{line['reloads']} reloads between two runs under load",
            "no wrong or missing answer",
            f"{line['right']:,} right, {line['wrong']} wrong, "
            f"{line['dropped'] + line['refused']} missing",
        ]
    ]


def _schema(line: Line) -> list[list[str]]:
    return [
        [
            "schemathesis against the OpenAPI description",
            "nothing found",
            f"{line['found']} found in {line['cases']:,} requests",
        ]
    ]


CHECKS: dict[str, Any] = {
    "memory": _memory,
    "overload": _overload,
    "reloads": _reloads,
    "schema": _schema,
}
