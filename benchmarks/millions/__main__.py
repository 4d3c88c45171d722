"""The command `python -m benchmarks.millions`, run in the root of the repository.

`time` runs `newfound discover` on texts made from real ones, in a process of its own, and `sample`
compares fitting on a sample with fitting on all texts. Each appends a line to
``benchmarks/results/millions.jsonl``, from which `make tables` renders the tables of the
documentation. FOLDER holds the paper's data sets and `wild` (default: NEWFOUND_DATA).
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from newfound.bench.datasets import data_folder
from newfound.bench.lines import append_line, commit
from newfound.devices import instruction_set
from newfound.errors import InputError
from newfound.versions import versions

RESULTS = Path("benchmarks/results/millions.jsonl")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.millions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--data", metavar="FOLDER", default=None)
    shared.add_argument("--seed", type=int, default=0)
    shared.add_argument("--effort", default="fast")
    shared.add_argument("--device", default="cpu")
    shared.add_argument("-o", "--out", type=Path, default=RESULTS, help="file that gets the line")
    commands = parser.add_subparsers(dest="command", required=True)
    time = commands.add_parser("time", parents=[shared], help="time and memory of a discovery")
    time.add_argument("--texts", type=int, required=True)
    time.add_argument("--largest", type=int, default=1_000_000, help="texts that are made")
    time.add_argument(
        "--encoder", default="small", help="small: the word embeddings of --real (default)"
    )
    time.add_argument("--real", default="minilm")
    time.add_argument("--categories", type=int, help="default: as many as the texts have")
    time.add_argument("--folder", type=Path, help="for table and run (default: a temporary one)")
    time.add_argument(
        "--minutes",
        type=float,
        help="interrupt after this time; the same command goes on (needs --folder)",
    )
    sample = commands.add_parser("sample", parents=[shared], help="accuracy of fits on samples")
    sample.add_argument("--data-set", required=True, help="clinc, massive, made, ...")
    sample.add_argument("--texts", type=int, nargs="+", required=True, help="sizes of samples")
    sample.add_argument("--encoder", default="minilm")
    sample.add_argument("--cache", type=Path, help="folder that keeps the encoder's vectors")
    options = parser.parse_args(arguments)
    try:
        line = {"time": _time, "sample": _sample}[options.command](options)
        if line is None:
            print("interrupted; the same command goes on")
            return 3
        line |= {"instruction_set": instruction_set(), "versions": versions(), "commit": commit()}
        append_line(options.out, line)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(line, indent=2))
    return 0


def _time(options: argparse.Namespace) -> dict[str, object] | None:
    """Measure a discovery and return its result line, None if it was interrupted."""
    from dataclasses import asdict

    from benchmarks.millions.measuring import SMALL, Timed, device_line, measure_time
    from benchmarks.millions.small_encoder import DESCRIBED

    case = Timed(
        options.texts,
        options.encoder,
        options.real,
        options.categories,
        options.effort,
        options.device,
        options.seed,
        options.largest,
    )
    with tempfile.TemporaryDirectory(prefix="newfound-") as temporary:
        folder = options.folder or Path(temporary)
        measured = measure_time(data_folder(options.data), case, folder, options.minutes)
    if measured is None:
        return None
    encoder = DESCRIBED if case.encoder == SMALL else Path(case.encoder).name
    config = {**asdict(case), "encoder": encoder}
    del config["real"]
    device = device_line(options.device)
    return {"kind": "millions", "config": config, "device": device, **measured}


def _sample(options: argparse.Namespace) -> dict[str, object] | None:
    """Compare fits on samples with a fit on all texts and return the result line."""
    from benchmarks.millions.measuring import device_line, measure_sample

    measured = measure_sample(
        data_folder(options.data),
        options.data_set,
        options.texts,
        effort=options.effort,
        encoder=options.encoder,
        seed=options.seed,
        device=options.device,
        cache=options.cache,
    )
    config = {
        "data_set": options.data_set,
        "samples": options.texts,
        "effort": options.effort,
        "encoder": Path(options.encoder).name,
        "seed": options.seed,
    }
    device = device_line(options.device)
    return {"kind": "fit sample", "config": config, "device": device, **measured}


if __name__ == "__main__":
    sys.exit(main())
