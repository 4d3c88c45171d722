"""`newfound predict --engine`: many tables into a folder, with one file per table."""

import argparse
from pathlib import Path

from newfound.cli.inputs import marking_options
from newfound.cli.output import Output
from newfound.errors import InputError
from newfound.wording import plural

ENGINES = ("local", "ray")
ALARM = 3  # exit code if more texts fit nowhere than expected
MOST_NOTES = 5  # that are printed; the manifest has all of them


def add_engine(command: argparse.ArgumentParser) -> None:
    """Add --engine and --workers."""
    command.add_argument(
        "--engine",
        choices=ENGINES,
        default=argparse.SUPPRESS,
        help="predict each table (shard) into a file of its own in the folder OUT, with a "
        "manifest; the same command goes on after a fault. local: one shard after the other in "
        "this process; ray: in worker processes of Ray, on this machine or on the cluster in "
        "RAY_ADDRESS, needs the extra ray (default: one table OUT)",
    )
    command.add_argument(
        "--workers",
        metavar="N",
        type=int,
        default=argparse.SUPPRESS,
        help="worker processes of --engine ray (default: one per GPU, or else per core)",
    )


def predict_into_folder(options: argparse.Namespace) -> int:
    """Predict shards; return 1 if some cannot be predicted, or the code of an alarm."""
    from newfound.clustering.misfits import judge_misfits
    from newfound.prediction import Predictor
    from newfound.sharding.runner import Engine, in_this_process, on_ray, predict_shards
    from newfound.sharding.work import ShardOptions

    output = Output(options)
    _check(options)
    outside, false_alarms = marking_options(options)
    workers: int | None = getattr(options, "workers", None)
    device: str | None = getattr(options, "device", None)
    predictor = Predictor(
        options.folder,
        text_column=getattr(options, "text_column", None),
        id_column=getattr(options, "id_column", None),
        device=device,
        outside=outside,
        false_alarms=false_alarms,
        int8=bool(options.int8),  # never left open: a folder must not mix two precisions
        trust_remote_code=options.trust_remote_code,
        static=options.static,
    )
    if options.alarm and predictor.model.fit_threshold is None:
        raise InputError(
            "--alarm with --engine counts the texts that are marked; add --outside or "
            "--false-alarms"
        )
    if options.int8 or options.static:  # converted once, before workers begin
        output.notes(predictor.notes)
    engine: Engine = in_this_process
    if options.engine == "ray":
        given = "cpu" if options.int8 else device  # int8 runs on a CPU
        engine = on_ray(workers, gpu=None if given is None else given.startswith("cuda"))
    out: Path = options.out
    try:
        done = predict_shards(
            predictor,
            [Path(name) for name in options.tables],
            out,
            engine=engine,
            options=ShardOptions(
                raw_cells=options.raw_cells,
                sheet=getattr(options, "sheet", None),
                query=getattr(options, "query", None),
                vector_column=getattr(options, "vector_column", None),
            ),
            force=options.force,
            stages=output.stages(),
        )
    except KeyboardInterrupt:
        # The default message would claim that nothing was written.
        raise KeyboardInterrupt("the same command goes on with what is missing") from None
    output.notes(done.notes[:MOST_NOTES])
    if len(done.notes) > MOST_NOTES:
        more = plural(len(done.notes) - MOST_NOTES, "more note is", "more notes are")
        output.notes([f"{more} in {out / 'manifest.json'}"])
    for source, why in done.failed.items():
        output.problem(f"{source} cannot be predicted: {why}")
    counts = done.counts
    parts = [f"{plural(counts['written'] or 0, 'text')} in {plural(done.shards, 'shard')}"]
    if done.before:
        parts.append(f"{plural(done.before, 'shard was', 'shards were')} finished before")
    if counts["fits_nowhere"] is not None:
        parts.append(f"{plural(counts['fits_nowhere'], 'fits', 'fit')} nowhere")
    if counts["set_aside"]:
        parts.append(f"{plural(counts['set_aside'], 'row is', 'rows are')} set aside")
    if done.failed:
        parts.append(f"{plural(len(done.failed), 'shard')} failed")
    value = {
        "out": str(out),
        "shards": done.shards,
        "finished_before": done.before,
        "failed": done.failed,
        "texts": counts["written"],
        **{name: counts[name] for name in ("rows", "empty", "set_aside", "fits_nowhere")},
        "notes": done.notes,
    }
    lines = [f"{'; '.join(parts)}: {out}"]
    texts = (counts["written"] or 0) - (counts["empty"] or 0)
    alarm = False
    if options.alarm and texts and counts["fits_nowhere"] is not None:
        reference, threshold = predictor.model.fit_reference, predictor.model.fit_threshold
        assert reference is not None  # a threshold comes from it
        assert threshold is not None
        misfits = judge_misfits(counts["fits_nowhere"], texts, reference, threshold)
        value["misfits"], alarm = misfits.to_dict(), misfits.more_than_expected
        lines.append(str(misfits))
    output.result(value, "\n".join(lines))
    return 1 if done.failed else ALARM if alarm else 0


def _check(options: argparse.Namespace) -> None:
    """Raise InputError for options that do not go together with --engine."""
    if getattr(options, "out", None) is None:
        raise InputError("name the folder to write with -o OUT")
    if "-" in options.tables:
        raise InputError("--engine reads tables, not standard input; omit --engine or -")
    if getattr(options, "vectors", None) is not None:
        raise InputError(
            "--vectors holds the vectors of one table; with --engine, write them into a column of "
            "Parquet tables and name it with --vector-column"
        )
    if not hasattr(options, "workers"):
        return
    if options.engine != "ray":
        raise InputError("--workers is for --engine ray; omit it")
    if options.workers < 1:
        raise InputError(f"--workers must be at least 1, not {options.workers}")
