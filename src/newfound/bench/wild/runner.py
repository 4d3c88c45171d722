"""Run a method or a peer on a table, and return its settings and scores as a result line."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from newfound.bench.lines import Line
from newfound.bench.runner import measured
from newfound.bench.wild.peers import PEERS
from newfound.bench.wild.scoring import Answer, category_counts, score
from newfound.bench.wild.tables import KIND, Cell, Table
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.data.task import make_task
from newfound.devices import find_device, seeded
from newfound.encoding.loading import load_encoder
from newfound.errors import InputError
from newfound.methods import METHODS, find_method, resolve_config
from newfound.pipeline import discover
from newfound.progress import Stages
from newfound.wording import suggestion

FROZEN = "bert"  # the method whose features are those of the frozen encoder


@dataclass(frozen=True)
class Plan:
    """The settings of a run.

    Parameters
    ----------
    cell : Cell
        How the table is cut.
    method : str
        A method of this package or one of `PEERS`.
    encoder : str
        Short name, folder or Hub id of the encoder.
    effort : str
        ``"fast"``, ``"balanced"`` or ``"best"``; peers have none.
    max_tokens : int
        Longer texts are truncated.
    given_k : bool
        Whether the true number of categories is given; otherwise it is estimated.
    settings : mapping, optional
        Settings of the method that differ from its defaults; peers have none.
    """

    cell: Cell
    method: str
    encoder: str = "minilm"
    effort: str = "fast"
    max_tokens: int = 128
    given_k: bool = True
    settings: Mapping[str, Any] | None = None

    def line(self) -> Line:
        """Return the fields of the result line that are known before the run; they identify it."""
        cell = asdict(self.cell)
        names = ("data_set", "seed", "known_ratio")
        return {
            "kind": KIND,
            "data_set": cell["data_set"],
            "method": self.method,
            "encoder": Path(self.encoder).name,
            "seed": cell["seed"],
            "known_ratio": cell["known_ratio"],
            "table": {name: value for name, value in cell.items() if name not in names},
            "config": {
                **_config(self),
                "max_tokens": self.max_tokens,
                "given_k": self.given_k,
            },
        }

    @property
    def title(self) -> str:
        """The name of the run in messages."""
        cell = self.cell
        parts = [cell.data_set, cell.design, cell.sizes]
        parts += [f"noise {cell.noise:g}"] if cell.noise else []
        parts += [] if self.given_k else ["K auto"]
        return ", ".join([*parts, self.method, f"seed {cell.seed}"])


def check_method(name: str) -> None:
    """Raise InputError for a name that is neither a method nor a peer."""
    if name not in METHODS and name not in PEERS:
        names = (*METHODS, *PEERS)
        advice = suggestion(name, names, f"choose some of {', '.join(names)}")
        raise InputError(f"the method {name!r} is unknown; {advice}")


def _config(plan: Plan) -> dict[str, Any]:
    """Return the settings of the plan's method."""
    check_method(plan.method)
    if plan.method in PEERS:
        return dict(PEERS[plan.method].settings)
    config = resolve_config(plan.method, plan.effort, plan.settings)
    return {**asdict(config), "effort": plan.effort}


def run(
    plan: Plan,
    table: Table,
    *,
    device: str | None = None,
    cache: Path | None = None,
    stages: Stages | None = None,
) -> Line:
    """Run a method or a peer on a table.

    Parameters
    ----------
    plan : Plan
        The settings of the run.
    table : Table
        The table that the plan's cell describes.
    device : str, optional
        ``"cpu"``, ``"cuda"`` or ``"cuda:N"``; by default a GPU if available.
    cache : Path, optional
        Folder of the feature cache that runs on the same texts share.
    stages : Stages, optional
        Times the stages and shows their progress.

    Returns
    -------
    dict
        The result line.
    """
    begun = time.perf_counter()
    stages = stages or Stages(False)
    answered = _ask_peer if plan.method in PEERS else _ask_method
    answer = answered(plan, table, device, cache, stages)
    with stages.stage("scoring"):
        scores, categories = score(answer, table), category_counts(answer, table)
    return {
        **plan.line(),
        "scores": scores,
        "categories": categories,
        "counts": table.counts(),
        **measured(begun, stages, device),
    }


def _ask_method(
    plan: Plan, table: Table, device: str | None, cache: Path | None, stages: Stages
) -> Answer:
    """Return what a discovery with the plan's method answers, as a user would run it."""
    config = RunConfig(
        method=plan.method,
        encoder=plan.encoder,
        n_categories=table.n_categories if plan.given_k else "auto",
        effort=plan.effort,  # type: ignore[arg-type]
        seed=plan.cell.seed,
        device=device,
        max_tokens=plan.max_tokens,
        cache=None if cache is None else str(cache),
    )
    corpus = Corpus.from_lists(table.texts, table.labels)
    result = discover(corpus, config, settings=plan.settings, stages=stages)
    assert corpus.known == table.known
    return Answer(
        result.predicted,
        len(result.categories),
        result.probability,
        fit=result.fit,
        estimated=None if result.estimate is None else result.estimate.n_categories,
    )


def _ask_peer(
    plan: Plan, table: Table, device: str | None, cache: Path | None, stages: Stages
) -> Answer:
    """Return the answer of a peer, from the frozen encoder's vectors."""
    vectors = frozen_vectors(plan, table, device, cache, stages)
    with stages.stage(plan.method):
        k = table.n_categories if plan.given_k else None
        return PEERS[plan.method].answer(table, vectors, k, plan.cell.seed)


def frozen_vectors(
    plan: Plan, table: Table, device: str | None, cache: Path | None, stages: Stages
) -> np.ndarray:
    """Return the frozen encoder's vectors [N, d] of a table, of unit length."""
    method, place = find_method(FROZEN), find_device(device)
    nothing = np.full(len(table.texts), -1, np.int64)
    # In the order in which `discover` encodes them, so that both share a cache.
    order = Corpus.from_lists(table.texts, table.labels).sorted_rows
    task = make_task([table.texts[row] for row in order], nothing, [], None)
    with seeded(plan.cell.seed, place):
        encoder = load_encoder(plan.encoder, max_tokens=plan.max_tokens, note=stages.note)
        encoder.backbone.to(place)
        features = method.counting_features(
            task, encoder, method.config(), seed=plan.cell.seed, stages=stages, cache=cache
        )
    vectors: np.ndarray = features.cpu().numpy()[np.argsort(order)]
    return vectors
