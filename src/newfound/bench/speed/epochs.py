"""The speed of DPN on a GPU: epochs, compared with a plain version and a lower bound; whole runs.

The plain implementation follows the authors' released code: texts are padded to the longest one,
frozen layers run again in every epoch, the whole vocabulary is scored at every position, in full
precision, one kernel at a time. A few steps are timed and scaled to an epoch.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from newfound.bench.datasets import DATA_SETS, DataSet, make_split, read_data_set
from newfound.bench.runner import Plan, run, split_task
from newfound.bench.speed.timing import Measures
from newfound.data.task import Task
from newfound.devices import plainly
from newfound.encoding.backbone import MaskedWordHead
from newfound.encoding.batching import Ragged, tokenize
from newfound.encoding.feature_maps import EncoderFeatures, pool
from newfound.encoding.loading import Encoder, load_encoder
from newfound.methods.dpn import DPNConfig, separation_loss, train
from newfound.progress import Stages
from newfound.training.masking import mask_words
from newfound.training.preparation import Prepared, prepare
from newfound.training.pretraining import frozen_count

SHORT_RUN, LONG_RUN = 3, 9  # epochs; the difference excludes work that is done once
PLAIN_STEPS = 20
PLAIN_BATCH = 32  # of pretraining in the released code
# Measured peak rates of a device: bfloat16 products of large matrices in FLOP/s, copies in bytes/s.
PEAKS = {"NVIDIA H200": (788e12, 4.3e12)}
ADAM_BYTES = (
    34  # per weight and step: weight, gradient and two means in fp32, and the bfloat16 copy
)


def measure_runs(folder: Path, encoder: str, seed: int) -> Measures:
    """Measure a run of DPN on each data set in a folder, and a plain run on BANKING."""
    found = {}
    for name in (name for name in DATA_SETS if (folder / name).is_dir()):
        data = read_data_set(folder, name)
        plan = Plan(name, "dpn", encoder=encoder, seed=seed)
        found[name] = _measure_run(plan, data)
        if name == "banking":
            with plainly():
                found[f"{name}, plain"] = _measure_run(plan, data)
    return found


def _measure_run(plan: Plan, data: DataSet) -> dict[str, Any]:
    """Return the seconds and the accuracy of one run."""
    line, _, _ = run(plan, data)
    seconds = line["seconds"]
    return {
        "seconds": seconds["total"],
        "pretraining_seconds": seconds["pretraining"],
        "training_seconds": seconds["training"],
        "accuracy": line["scores"]["kmeans"]["all"],
    }


def measure_epochs(data: DataSet, encoder: str, device: torch.device, repeats: int) -> Measures:
    """Measure the seconds per epoch of pretraining and training, ours and the plain ones."""
    task = split_task(make_split(data, seed=0), given_k=True)
    config = DPNConfig(patience=10**6)
    loaded = load_encoder(encoder)
    tokens = tokenize(loaded.tokenizer, task.texts, loaded.max_tokens)
    loaded.backbone.to(device)
    start = {name: value.clone() for name, value in loaded.backbone.state_dict().items()}

    def fresh() -> Encoder:
        loaded.backbone.load_state_dict(start)
        loaded.backbone.requires_grad_(True)
        torch.manual_seed(0)
        return loaded

    begun: list[Prepared] = []

    def pretrain(length: int) -> float:
        stages = Stages(False)
        lasting = replace(config, pretrain_epochs=length)
        begun[:] = [
            prepare(
                task,
                fresh(),
                lasting,
                trainable_layers=lasting.trainable_layers,
                seed=0,
                stages=stages,
                cache=None,
            )
        ]
        return stages.seconds["pretraining"]

    def go_on(length: int) -> float:
        stages = Stages(False)
        train(begun[0], task, replace(config, epochs=length), 0, stages)
        return stages.seconds["training"]

    depth = loaded.backbone.shape.layers
    return {
        "pretraining": {
            "seconds": _epoch_seconds(pretrain, repeats),
            **least_cost(task, tokens, loaded, config, depth, device, masked=True),
        },
        "training": {
            "seconds": _epoch_seconds(go_on, repeats),
            **least_cost(task, tokens, loaded, config, int(config.trainable_layers), device),
        },
        "pretraining, plain": {"seconds": _plain_pretraining(fresh(), task, tokens)},
        "training, plain": {"seconds": _plain_training(fresh(), task, tokens, config)},
    }


def _epoch_seconds(run: Callable[[int], float], repeats: int) -> float:
    """Return the median seconds per epoch, without the first epochs' warm-up."""
    run(1)
    found = [(run(LONG_RUN) - run(SHORT_RUN)) / (LONG_RUN - SHORT_RUN) for _ in range(repeats)]
    return float(np.median(found))


def least_cost(
    task: Task,
    tokens: Ragged,
    encoder: Encoder,
    config: DPNConfig,
    layers: int,
    device: torch.device,
    *,
    masked: bool = False,
) -> dict[str, Any]:
    """Return the arithmetic and the optimiser's memory traffic that an epoch cannot avoid.

    Every token uses each weight of a trained layer three times (once forward, twice backward), with
    one multiplication and one addition each; lower layers are cached. Activations are not counted.
    """
    shape, n = encoder.backbone.shape, len(task.texts)
    rows = n if masked else len(task.unlabelled)
    batch = config.pretrain_batch if masked else config.batch
    extra = config.pretrain_labelled_batch if masked else config.labelled_batch
    steps = -(-rows // batch)
    mean = float(tokens.lengths.mean())
    layer = 4 * shape.width**2 + 2 * shape.width * shape.inner
    read = mean * (rows + steps * extra)
    flops = 6 * read * layer * layers
    weights = layer * layers
    if masked:
        flops += 6 * 0.15 * mean * rows * shape.width * shape.vocabulary
        weights += shape.width * shape.vocabulary
    moved = ADAM_BYTES * weights * steps
    least = {"steps": steps, "flop": round(flops), "bytes": moved}
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    if name not in PEAKS:
        return least
    arithmetic, bandwidth = PEAKS[name]
    return {**least, "floor_seconds": round(max(flops / arithmetic, moved / bandwidth), 4)}


def _timed(step: Callable[[], None], device: torch.device, steps: int) -> float:
    """Return the seconds per step, after three steps to warm up."""
    for _ in range(3):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(steps):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - begun) / steps


def _plain_pretraining(encoder: Encoder, task: Task, tokens: Ragged) -> float:
    """Return the seconds per epoch of Eq. 1 in the plain implementation."""
    assert encoder.mask_id is not None
    model = EncoderFeatures(encoder, head="none").to(encoder.backbone.words.weight.device)
    device, width = model.device, int(tokens.lengths.max())
    tokens, mask_id = tokens.to(device), encoder.mask_id
    shape = encoder.backbone.shape
    words = MaskedWordHead(shape).to(device)
    classifier = nn.Linear(model.width, len(task.known)).to(device)
    weights = [w for module in (model, words, classifier) for w in module.parameters()]
    optimiser = torch.optim.AdamW(weights, lr=5e-5)
    targets = torch.from_numpy(task.targets).to(device)
    labelled = torch.from_numpy(task.labelled).to(device)
    model.train()

    def step() -> None:
        rows = torch.randint(len(tokens), (PLAIN_BATCH,), device=device)
        ids, mask = tokens.padded(rows, width)
        share = 0.15
        masked, places, wanted = mask_words(
            ids, mask, model.special, mask_id, shape.vocabulary, share
        )
        truth = torch.full((ids.numel(),), -100, device=device)
        truth[places] = wanted
        hidden = model.upper(masked, mask)
        scores = words(hidden.flatten(0, 1), model.backbone.words)  # at every position
        loss = F.cross_entropy(scores, truth, ignore_index=-100)
        some = labelled[torch.randint(len(labelled), (PLAIN_BATCH,), device=device)]
        raw = model.from_states(*tokens.padded(some, width))
        loss = loss + F.cross_entropy(classifier(raw), targets[some])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        float(loss.detach())  # such code logs its loss at every step

    return _timed(step, device, PLAIN_STEPS) * -(-len(tokens) // PLAIN_BATCH)


def _plain_training(encoder: Encoder, task: Task, tokens: Ragged, config: DPNConfig) -> float:
    """Return the seconds per epoch of DPN's own losses in the plain implementation."""
    model = EncoderFeatures(encoder, head="none").to(encoder.backbone.words.weight.device)
    model.freeze(frozen_count(config.trainable_layers, encoder.backbone.shape.layers))
    device, width = model.device, int(tokens.lengths.max())
    tokens = tokens.to(device)
    classifier = nn.Linear(model.width, len(task.known)).to(device)
    learning = [w for w in (*model.parameters(), *classifier.parameters()) if w.requires_grad]
    optimiser = torch.optim.AdamW(learning, lr=1e-5)
    targets = torch.from_numpy(task.targets).to(device)
    free = torch.from_numpy(task.unlabelled).to(device)
    labelled = torch.from_numpy(task.labelled).to(device)
    assert task.n_categories is not None
    clusters = torch.arange(len(task.texts), device=device) % task.n_categories
    prototypes = F.normalize(torch.randn(task.n_categories, model.width, device=device), dim=1)
    known = prototypes[: len(task.known)]
    size, extra = min(config.batch, len(free)), min(config.labelled_batch, len(labelled))
    model.train()

    def features(rows: Tensor) -> Tensor:
        ids, mask = tokens.padded(rows, width)
        hidden = model.upper(model.lower(ids, mask).float(), mask)
        return pool(hidden, mask, model.encoder.pooling)

    def step() -> None:
        rows = free[torch.randint(len(free), (size,), device=device)]
        some = labelled[torch.randint(len(labelled), (extra,), device=device)]
        loss = separation_loss(
            model.finish(features(rows)), clusters[rows], prototypes, known, config
        )
        loss = loss + F.cross_entropy(classifier(features(some)), targets[some])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        float(loss.detach())

    return _timed(step, device, PLAIN_STEPS) * -(-len(free) // size)
