"""Measure the runs that have no result line yet, one by one, and report what came of them."""

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from newfound.bench.lines import Line, append_line, key_of, read_lines
from newfound.errors import InputError
from newfound.wording import plural

if TYPE_CHECKING:
    from newfound.cli.output import Output

AnyPlan = TypeVar("AnyPlan")


@dataclass(frozen=True)
class Job(Generic[AnyPlan]):
    """A run to make: its plan, what messages call it, what identifies it, and where it goes."""

    plan: AnyPlan
    title: str
    head: Line  # the fields of the result line that are known before the run
    out: Path


@dataclass
class Measured:
    """The lines of the runs that were made, and how the others ended."""

    lines: list[Line] = field(default_factory=list)
    failed: int = 0
    interrupted: bool = False


def pending(jobs: Sequence[Job[AnyPlan]], output: "Output") -> list[Job[AnyPlan]]:
    """Return the jobs without a line in their file."""
    there = {key_of(line) for out in {job.out for job in jobs} for line in read_lines(out)}
    todo = [job for job in jobs if key_of(job.head) not in there]
    output.progress(f"{len(jobs)} runs; {len(jobs) - len(todo)} already have a result line")
    return todo


def measure(
    jobs: Sequence[Job[AnyPlan]], run: Callable[[AnyPlan], tuple[Line, str]], output: "Output"
) -> Measured:
    """Make every run and append its line; a run that fails does not stop the others.

    Parameters
    ----------
    jobs : sequence of Job
        The runs to make.
    run : callable
        Makes the run of a plan; returns its result line and a message about it.
    output : Output
        Where messages go.

    Returns
    -------
    Measured
    """
    done = Measured()
    for number, job in enumerate(jobs, 1):
        title = f"[{number}/{len(jobs)}] {job.title}"
        output.progress(f"{title} ...")
        output.settings(job.head.get("config", {}))
        try:
            line, message = run(job.plan)
            append_line(job.out, line)
        except KeyboardInterrupt:
            output.problem(
                "interrupted: finished runs are kept; run the same command again for the others"
            )
            done.interrupted = True
            break
        except InputError as error:
            done.failed += 1
            output.problem(f"{title} failed: {error}")
        except Exception:
            done.failed += 1
            output.problem(traceback.format_exc() + f"{title} failed")
        else:
            done.lines.append(line)
            output.progress(f"{title}: {message} ({line['seconds']['total']:.0f} s)")
    if done.failed:
        output.problem(
            f"{done.failed} of {len(jobs)} runs failed; run the same command to try them again"
        )
    return done


def conclude(jobs: Sequence[Job[AnyPlan]], done: Measured, output: "Output") -> int:
    """Print what was measured and return the exit code: 1 if a run failed, 130 if interrupted."""
    files = list(dict.fromkeys(str(job.out) for job in jobs))
    text = f"{plural(len(done.lines), 'new result line', 'new result lines')} in {', '.join(files)}"
    value = {
        "runs": len(jobs),
        "measured": len(done.lines),
        "failed": done.failed,
        "files": files,
        "lines": done.lines,
    }
    output.result(value, text)
    return 130 if done.interrupted else int(done.failed > 0)
