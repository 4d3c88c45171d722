"""Predict all shards that are not finished yet, with the workers of an engine."""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from newfound.errors import InputError
from newfound.prediction import Predictor
from newfound.progress import Stages
from newfound.sharding.folder import Receipt, ShardFolder, open_shard_folder
from newfound.sharding.ray_workers import Lost, call_on_ray, check_ray
from newfound.sharding.shards import Shard, find_shards
from newfound.sharding.work import ShardOptions, ShardWork

# Calls the work with each shard, in any order, and yields the position of the shard and what the
# work returned: a receipt, or the reason why there is none.
Outcomes = Generator[tuple[int, Receipt | str], None, None]
Engine = Callable[[ShardWork, Sequence[Shard]], Outcomes]


@dataclass(frozen=True)
class Summary:
    """What `predict_shards` did.

    Attributes
    ----------
    shards : int
        Number of shards.
    before : int
        Those that were finished before.
    failed : dict of str to str
        The reason of each shard that could not be predicted, by the path of the table.
    counts : dict of str to int or None
        Sums over the finished shards: rows, written, empty, set_aside, fits_nowhere.
    notes : list of str
        What the user should know about the tables and the model.
    """

    shards: int
    before: int
    failed: dict[str, str]
    counts: dict[str, int | None]
    notes: list[str]


def in_this_process(work: ShardWork, shards: Sequence[Shard]) -> Outcomes:
    """Predict shards one after the other."""
    work.load()
    for position, shard in enumerate(shards):
        yield position, work(shard)


def predict_shards(
    predictor: Predictor,
    tables: Sequence[Path],
    out: Path,
    *,
    engine: Engine = in_this_process,
    options: ShardOptions | None = None,
    force: bool = False,
    stages: Stages | None = None,
) -> Summary:
    """Predict many tables into a folder, one file per table; go on where an earlier call ended.

    Parameters
    ----------
    predictor : Predictor
    tables : sequence of Path
        Files, folders, or patterns such as ``shards/*.parquet``.
    out : Path
        A new folder, or one that an earlier call wrote. Shards that are finished there are not
        predicted again.
    engine : callable, optional
        Where shards are predicted; by default in this process, one after the other.
    options : ShardOptions, optional
        How tables are read.
    force : bool, default False
        Whether to delete earlier predictions in the folder.
    stages : Stages, optional
        Shows progress.

    Returns
    -------
    Summary

    Raises
    ------
    InputError
        If the folder holds predictions of another model, or the model cannot be loaded. What is
        finished stays.
    """
    options, stages = options or ShardOptions(), stages or Stages(show=False)
    shards = find_shards(tables)
    for shard in shards:
        # Unlike resolve(), accepts a loop of links.
        if os.path.realpath(shard.source.parent) == os.path.realpath(out):
            raise InputError(f"{out} holds the tables themselves; choose another folder")
    about = {
        "model": {"folder": str(predictor.folder), "sha256": predictor.digest},
        "options": _recorded(predictor, options),
    }
    failed: dict[str, dict[str, str]] = {}
    with open_shard_folder(out, about, shards, force=force) as folder:
        waiting = folder.begin(shards)
        work = ShardWork(predictor, folder.folder, options)
        try:
            _run(engine, work, waiting, folder, failed, stages)
        finally:
            folder.finish(shards, failed)
        notes = [note for shard in shards for note in _notes(folder, shard)]
        return Summary(
            len(shards),
            len(shards) - len(waiting),
            {entry["source"]: entry["reason"] for entry in failed.values()},
            folder.counts(shards),
            list(dict.fromkeys(notes)),
        )


def _run(
    engine: Engine,
    work: ShardWork,
    shards: Sequence[Shard],
    folder: ShardFolder,
    failed: dict[str, dict[str, str]],
    stages: Stages,
) -> None:
    """Predict shards, and keep what becomes of each."""
    if not shards:
        return
    # Closed before the manifest is written: no worker may be at work then.
    with (
        closing(engine(work, shards)) as outcomes,
        stages.stage("predicting", len(shards)) as advance,
    ):
        for position, found in outcomes:
            shard = shards[position]
            if isinstance(found, Receipt):
                folder.entries[shard.output] = found
            else:
                failed[shard.output] = {"source": str(shard.source), "reason": found}
            advance(1)


def _notes(folder: ShardFolder, shard: Shard) -> list[str]:
    """Return the notes on a shard."""
    entry = folder.entries.get(shard.output)
    return [] if entry is None else entry.notes


def _recorded(predictor: Predictor, options: ShardOptions) -> dict[str, Any]:
    """Return the options on which predictions depend; those of one folder have the same."""
    chosen = {
        "text_column": predictor.text_column,
        "id_column": predictor.id_column,
        **asdict(predictor.options),
        **asdict(options),
    }
    # The device changes only last digits; whether foreign code may run changes nothing.
    return {k: v for k, v in chosen.items() if k not in ("device", "trust_remote_code")}


def on_ray(workers: int | None = None, *, gpu: bool | None = None) -> Engine:
    """Return the engine that predicts shards in worker processes of Ray.

    Parameters
    ----------
    workers : int, optional
        Number of worker processes; by default one per GPU or core of the cluster.
    gpu : bool, optional
        Whether each worker has a GPU; by default, if the cluster has GPUs.

    Returns
    -------
    callable
        For the parameter `engine` of `predict_shards`.
    """

    check_ray()

    def run(work: ShardWork, shards: Sequence[Shard]) -> Outcomes:
        with closing(call_on_ray(work, shards, workers=workers, gpu=gpu)) as results:
            for position, found in results:
                yield position, str(found) if isinstance(found, Lost) else found

    return run
