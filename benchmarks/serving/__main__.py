"""The command `python -m benchmarks.serving`, run in the root of the repository.

It measures `newfound serve` on the loopback with wrk and appends one line per part to
``benchmarks/results/serving.jsonl``, from which `make tables` renders the documentation. A machine
with nothing else to do is needed for `speed`. The exit code is 1 if an answer was wrong or missing.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from newfound.devices import instruction_set
from newfound.errors import InputError

RESULTS = Path("benchmarks/results/serving.jsonl")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    from benchmarks.serving.ground import make_ground
    from benchmarks.serving.parts import PARTS
    from newfound.bench.lines import append_line, commit
    from newfound.versions import versions

    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder for runs, which are made once")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument(
        "--data", type=Path, default=Path("data"), help="folder of the data sets (default: data)"
    )
    parser.add_argument(
        "-o", "--out", type=Path, default=RESULTS, help="file that gets the result lines"
    )
    parser.add_argument("--prepare", action="store_true", help="only make the runs")
    options = parser.parse_args(arguments)
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {min(unknown)}; choose of {', '.join(PARTS)}")
    failures = 0
    try:
        ground = make_ground(options.folder, options.data)
        for name in [] if options.prepare else options.parts or PARTS:
            print(f"{name} ...", file=sys.stderr, flush=True)
            found = PARTS[name](ground)
            print(found, flush=True)
            failures += sum(
                found.get(count, 0) for count in ("wrong", "dropped", "failed", "found")
            )
            line = {
                "kind": "serving",
                "table": name,
                **found,
                "device": f"cpu, {os.cpu_count()} cores",
                "instruction_set": instruction_set(),
                "versions": versions(),
                "commit": commit(),
            }
            append_line(options.out, line)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
