"""Write a folder as `newfound discover` would, for tests of what reads one."""

import csv
import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from newfound.category import Category
from newfound.lineage import id_of_number

THINGS = ("card", "transfer", "refund", "account", "password", "invoice", "delivery", "top up",
          "currency", "statement", "app", "loan", "fee", "limit", "receipt", "subscription",
          "address", "voucher", "bank", "phone")  # fmt: skip
MATTERS = ("not working", "arrival", "cancel", "delayed", "wrong amount", "how to change",
           "lost", "declined", "charged twice", "pending")  # fmt: skip
OPENINGS = ("Hello, my {}", "Why is my {}", "I need help: the {}", "Please tell me if my {}",
            "Since yesterday my {}", "Can you check why the {}")  # fmt: skip
ENDINGS = ("and nobody answers.", "again!", "what should I do?", "since Monday.", "please help",
           "- thanks.")  # fmt: skip

# Each would set window.hacked, load something or break the page if it were not treated as data.
EVIL = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script>",
    "<img src=x onerror='window.hacked = 3'>",
    '"><svg onload="window.hacked = 4">',
    "{{constructor.constructor('window.hacked = 5')()}} ${window.hacked = 6} {{data}} {{script}}",
    "<!--<script>",
    "]]> <style>body{display:none}</style> <a href='javascript:window.hacked=7'>x</a>",
    "<iframe src='https://example.invalid/'></iframe><link rel=stylesheet href=//example.invalid>",
    "control \x01\x02\x07\x1b[31m\x7f\x9b end",
    "right to left \u202eoverride\u202c and \u2067isolate\u2069 \u200f\u05e9\u05dc\u05d5\u05dd",
    "line\nbreak\r\nand tab\t and \u2028 separators \u2029 end",
    "=cmd|'/c calc'!A1 \\u003cscript\\u003e \\",
    "emoji \U0001f469\U0001f3fd\u200d\U0001f4bb\U0001f3f3\ufe0f\u200d\U0001f308 \U0001f600",
    "Z\u0351\u0343\u034a\u036e\u0334\u0321\u0347\u0330a\u0351\u0343\u034a\u036e\u0334lgo",
    "W" * 100_000,
)


def write_fake_run(
    folder: Path,
    n_texts: int,
    n_known: int,
    n_novel: int,
    seed: int,
    evil: bool = False,
    parquet: bool = False,
) -> Path:
    """Write a run of `n_texts` texts; with `evil`, hostile strings stand wherever a user's can."""
    rng = np.random.default_rng(seed)
    total = n_known + n_novel
    names = [_name(i) for i in range(total)]
    if evil:
        names[: len(EVIL)] = [f"{text[:300]} {i}" for i, text in enumerate(EVIL[:total])]
        names[-1] = f"{EVIL[1]} novel"
    kinds = ["known"] * n_known + ["novel"] * n_novel
    weights = rng.gamma(2.5, size=total) + 0.15
    model = rng.choice(total, size=n_texts, p=weights / weights.sum())
    model[: min(total, n_texts)] = np.arange(total)[:n_texts]
    given = (model < n_known) & (rng.random(n_texts) < 0.3)
    # A few labels that the model disagrees with.
    label = np.where(rng.random(n_texts) < 0.03, (model + 1) % max(n_known, 1), model)
    category = np.where(given, label, model)
    texts = [_text(names[i], i, rng) for i in model]
    if evil:
        for i, text in enumerate(EVIL * 3):
            texts[i % n_texts] = text
    centres = rng.normal(size=(total, 2)) * 10
    xy = centres[model] + rng.normal(size=(n_texts, 2)) * (0.7 + rng.random((total, 1))[model])
    probability = np.clip(rng.beta(7, 1.4, size=n_texts), 0.02, 1)
    table = pd.DataFrame(
        {
            "id": [str(i) for i in range(n_texts)],
            "text": texts,
            "label": [names[c] if g else "" for c, g in zip(category, given, strict=True)],
            "category": [names[c] for c in category],
            "kind": [kinds[c] for c in category],
            "probability": probability,
            "predicted": [names[c] for c in model],
            "x": xy[:, 0],
            "y": xy[:, 1],
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    if parquet:
        table.to_parquet(folder / "assignments.parquet")
    else:
        table.to_csv(folder / "assignments.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=2) / 20
    np.fill_diagonal(apart, np.inf)
    categories = []
    for i in range(total):
        members = np.flatnonzero(category == i)
        sure = members[np.argsort(-probability[members])]
        nearest = int(apart[i].argmin())
        categories.append(
            Category(
                id=id_of_number(i + 1),
                name=names[i],
                kind=kinds[i],
                status="known" if i < n_known else "proposed",
                size=len(members),
                share=len(members) / n_texts,
                labelled=int(given[members].sum()),
                keywords=tuple(names[i].split()) + (tuple(EVIL) if evil else ()),
                examples=tuple(texts[m] for m in sure[:5]),
                border=tuple(texts[m] for m in sure[::-1][:5]),
                confidence=float(probability[members].mean()) if len(members) else math.nan,
                nearest=id_of_number(nearest + 1) if total > 1 else None,
                nearest_distance=float(apart[i, nearest]) if total > 1 else math.nan,
                distance=float(0.04 + 0.08 * rng.random()) if i < n_known else None,
            )
        )
    (folder / "categories.json").write_text(
        json.dumps([asdict(c) for c in categories], ensure_ascii=False), encoding="utf-8"
    )
    _write_records(folder, names, n_known, n_texts, int(given.sum()), rng, evil)
    return folder


def _name(i: int) -> str:
    again = i // (len(THINGS) * len(MATTERS))
    name = f"{THINGS[i % len(THINGS)]} {MATTERS[(i // len(THINGS) + i) % len(MATTERS)]}"
    return f"{name} {again + 1}" if again else name


def _text(name: str, category: int, rng: np.random.Generator) -> str:
    opening = OPENINGS[rng.integers(len(OPENINGS))].format(name[:60])
    return f"{opening} {ENDINGS[rng.integers(len(ENDINGS))]} ({category}-{rng.integers(10**6)})"


def _write_records(
    folder: Path,
    names: list[str],
    n_known: int,
    n_texts: int,
    labelled: int,
    rng: np.random.Generator,
    evil: bool,
) -> None:
    total = len(names)
    candidates = list(range(max(2, total - 24), total + 25, 2))
    scores = [float(0.42 - 0.0002 * (k - total) ** 2 + 0.004 * rng.random()) for k in candidates]
    distances = 0.55 + 0.4 * rng.random((n_known, total))
    distances[np.arange(n_known), np.arange(n_known)] = 0.04 + 0.1 * rng.random(n_known)
    run = {
        "format": 1,
        "newfound": "0.1.0",
        "command": "newfound discover texts.csv --seed 0",
        "settings": {
            "method": "dpn",
            "encoder": "minilm",
            "n_categories": "auto",
            "effort": "fast",
            "seed": 0,
            "settings": {"temperature": 0.07, "epochs": 12},
        }
        | ({"note": list(EVIL)} if evil else {}),
        "versions": {"python": "3.11", "newfound": "0.1.0", "torch": "2.4"},
        "seed": 0,
        "device": "cpu",
        "seconds": {"total": 71.2, "encoding": 20.5, "pretraining": 15.0, "training": 33.1},
        "notes": ["3 rows without a text were left out"] + (list(EVIL) if evil else []),
        "texts": n_texts,
        "labelled": labelled,
        "categories": {"known": n_known, "novel": total - n_known, "total": total, "given": False},
        "estimate": {
            "estimate": total,
            "candidates": candidates,
            "scores": scores,
            "low": total - 3,
            "high": total + 4,
            "how": "The number whose categories are tightest and furthest apart.",
        },
        "matching": {
            "labelled": names[:n_known],
            "prototypes": names,
            "distances": distances.tolist(),
        }
        if n_known
        else None,
        "scores": None,
    }
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    lines = [
        {"stage": "pretraining", "epoch": e, "loss": 3 / e, "validation_accuracy": 0.95 - 0.6 / e}
        for e in range(1, 9)
    ] + [
        {"stage": "training", "epoch": e, "loss": 2 + 2 / e, "prototype_loss": 1 + 1.2 / e,
         "pull_loss": 0.6 + 0.5 / e, "validation_accuracy": 0.97 - 0.3 / e}
        for e in range(1, 13)
    ]  # fmt: skip
    (folder / "history.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
