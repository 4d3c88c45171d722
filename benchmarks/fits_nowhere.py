"""Measure probabilities and fit scores: how often what is sure is right, and what belongs nowhere.

    python -m benchmarks.fits_nowhere --data DATA --tables checking --cache CACHE

Tables are cut as in `newfound bench wild`, with K given. The constants of `clustering.calibration`
were fitted on tables cut as `choosing`; `checking` has other data sets, though clinc_imbalanced has
texts of CLINC. `unseen` leaves a fifth of the categories out of the table and lets their texts come
to `predict`.

| measured | of |
|---|---|
| calibration error (all, known, novel) | the unlabelled texts that are in scope, in ten bins |
| the same of the softmax | the probabilities without the evidence of neighbours and labels |
| AUROC in the pile | out-of-scope texts among the unlabelled ones |
| AUROC in predict | out-of-scope texts among new texts of the same categories |
| AUROC unseen | texts of categories that were left out, among new texts |

One result line is appended per table, and a summary of all of them is printed.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.rendering.tables.calibration import summary
from newfound.bench.datasets import data_folder
from newfound.bench.lines import Line, append_line, commit
from newfound.bench.wild.runner import Plan
from newfound.bench.wild.scoring import Answer, score
from newfound.bench.wild.sources import Source, read_out_of_scope, read_source
from newfound.bench.wild.tables import Cell, Table, cut_table
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.pipeline import discover

LINES = Path("benchmarks/results/fits_nowhere.jsonl")
LIMIT = 3000  # texts of a table
NEW = 1500  # in-scope texts that come to predict
UNSEEN = 0.2  # of the categories, left out
DESIGNS = ("tenth", "ten", "archive")
# Data set, design, sizes and noise of each table.
TABLES: dict[str, list[tuple[str, str, str, float]]] = {
    "choosing": [
        *(
            (name, design, "natural", 0.0)
            for name in ("massive", "mcid", "newsgroups_a", "clinc_imbalanced")
            for design in DESIGNS
        ),
        ("massive", "tenth", "tail10", 0),
        ("massive", "tenth", "natural", 0.1),
        ("massive", "ten", "natural", 0.3),
        ("mcid", "ten", "natural", 0.1),
        ("newsgroups_a", "tenth", "natural", 0.1),
        ("clinc_imbalanced", "tenth", "natural", 0.1),
        ("clinc_imbalanced", "ten", "natural", 0.3),
    ],
    "checking": [
        *(
            (name, design, "natural", 0.0)
            for name in ("banking", "clinc", "hwu64")
            for design in DESIGNS
        ),
        *((name, "tenth", "tail10", 0.0) for name in ("banking", "clinc", "hwu64")),
        *((name, "tenth", "natural", 0.1) for name in ("banking", "clinc", "hwu64")),
        ("banking", "ten", "natural", 0.3),
        ("clinc", "ten", "natural", 0.3),
    ],
    "unseen": [
        ("massive", "tenth", "natural", 0),
        ("clinc", "tenth", "natural", 0),
        ("banking", "ten", "natural", 0),
    ],
}


@dataclass(frozen=True)
class Task:
    """A table, and new texts for `predict`; the truth of an out-of-scope text is None."""

    table: Table
    new_texts: list[str]
    new_truth: list[str | None]


def make_task(source: Source, cell: Cell, out_of_scope: Sequence[str], unseen: float) -> Task:
    """Cut a table of a data set without a share of its categories, and draw new texts."""
    rng = np.random.default_rng(cell.seed)
    categories = sorted(set(source.labels))
    left_out = set(rng.permutation(categories)[: round(unseen * len(categories))])
    kept = [i for i, label in enumerate(source.labels) if label not in left_out]
    seen = Source(source.name, [source.texts[i] for i in kept], [source.labels[i] for i in kept])
    table = cut_table(seen, cell, out_of_scope)
    used = set(table.texts)
    rows = [i for i, text in enumerate(source.texts) if text not in used]
    new = rng.permutation(rows)[:NEW]
    strange = [text for text in out_of_scope if text not in used]
    return Task(
        table,
        [*(source.texts[i] for i in new), *strange],
        [*(source.labels[i] for i in new), *[None] * len(strange)],
    )


def measure(task: Task, config: RunConfig) -> dict[str, Any]:
    """Discover, predict, and return the measurements."""
    table = task.table
    result = discover(Corpus.from_lists(table.texts, table.labels), config)
    assert result.model is not None
    assert result.training_features is not None
    answer = Answer(result.predicted, len(result.categories), result.probability, fit=result.fit)
    scores = score(answer, table)
    softmax = replace(result.model, fit_reference=None).answers(result.training_features, None)
    plain = score(replace(answer, probability=softmax.probability), table)
    found = result.model.predict(task.new_texts)
    strange = np.array([label is None for label in task.new_truth], bool)
    seen = np.isin(np.array([str(label) for label in task.new_truth]), list(_categories(table)))
    return {
        "accuracy": {name: scores[name] for name in ("all", "known", "novel")},
        "calibration_error": _calibration_errors(scores),
        "calibration_error_of_softmax": _calibration_errors(plain),
        "auroc": {
            "in_pile": scores["auroc"],
            "in_predict": _auroc(strange, found.fit, strange | seen),
            "unseen": _auroc(~seen, found.fit, ~strange),
            "in_pile_by_probability": score(replace(answer, fit=None), table)["auroc"],
            "in_predict_by_probability": _auroc(strange, found.probability, strange | seen),
        },
        "seconds": {"total": round(sum(result.seconds.values()), 1)},
    }


def _categories(table: Table) -> set[str]:
    """Return the categories of the table's texts."""
    return {name for name in table.truth if name is not None}


def _calibration_errors(scores: dict[str, float | None]) -> dict[str, float | None]:
    """Return the calibration errors among the scores."""
    return {"all": scores["ece"], "known": scores["ece_known"], "novel": scores["ece_novel"]}


def _auroc(positive: np.ndarray, fit: np.ndarray, chosen: np.ndarray) -> float | None:
    """Return the area under the curve of a score that is low for positives."""
    positive, fit = positive[chosen], fit[chosen]
    if positive.all() or not positive.any():
        return None
    return round(float(roc_auc_score(positive, -fit)), 4)


def main() -> None:
    """Measure each table, and append a line for it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", help="folder of the data sets (default: NEWFOUND_DATA)")
    parser.add_argument("--tables", nargs="+", choices=tuple(TABLES), default=list(TABLES))
    parser.add_argument("--data-set", nargs="+", help="only tables of these data sets")
    parser.add_argument("--limit", type=int, default=LIMIT, help="most texts of a table")
    parser.add_argument("--effort", default="fast")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--device")
    parser.add_argument("--cache", help="folder for the output of frozen layers")
    parser.add_argument("--out", type=Path, default=LINES)
    options = parser.parse_args()
    folder = data_folder(options.data)
    out_of_scope = read_out_of_scope(folder)
    lines: list[Line] = []
    for seed in options.seeds:
        for group in options.tables:
            for name, design, sizes, noise in TABLES[group]:
                if options.data_set and name not in options.data_set:
                    continue
                cell = Cell(name, design, sizes, noise, seed, limit=options.limit)
                unseen = UNSEEN if group == "unseen" else 0.0
                task = make_task(read_source(folder, name), cell, out_of_scope, unseen)
                config = RunConfig(
                    n_categories=task.table.n_categories,
                    effort=options.effort,
                    seed=seed,
                    device=options.device,
                    cache=options.cache,
                )
                line = Plan(cell, config.method, effort=options.effort).line()
                line |= {"kind": "fits-nowhere", "tables": group}
                line["table"]["unseen"] = unseen
                line |= {**measure(task, config), "commit": commit()}
                append_line(options.out, line)
                lines.append(line)
                shown = ("accuracy", "calibration_error", "auroc")
                print(group, cell, {key: line[key] for key in shown}, flush=True)
    print("\n".join(summary(lines)))


if __name__ == "__main__":
    main()
