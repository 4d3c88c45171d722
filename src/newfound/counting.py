"""`newfound estimate`: how many categories a corpus holds, without a discovery."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from newfound.clustering.n_categories import Estimate, estimate_categories
from newfound.config import RunConfig
from newfound.data.corpus import Corpus, check_corpus
from newfound.data.task import make_task
from newfound.devices import find_device, seeded
from newfound.encoding.loading import load_encoder
from newfound.methods import find_method, resolve_config
from newfound.progress import Stages


def count_categories(
    corpus: Corpus,
    config: RunConfig,
    stages: Stages,
    settings: Mapping[str, Any] | None = None,
) -> Estimate:
    """Estimate the number of categories with the features that the method would count with."""
    check_corpus(corpus, None)
    device = find_device(config.device)
    effort = config.effort or ("best" if device.type == "cuda" else "balanced")
    method_config = resolve_config(config.method, effort, settings)
    task = make_task(corpus.texts, corpus.targets, corpus.known, None, seed=config.seed)
    with seeded(config.seed, device):
        encoder = load_encoder(config.encoder, pooling=config.pooling, max_tokens=config.max_tokens)
        encoder.backbone.to(device)
        method = find_method(config.method)
        arguments = {
            "seed": config.seed,
            "stages": stages,
            "cache": Path(config.cache) if config.cache else None,
        }
        if method.estimate is not None:
            return method.estimate(task, encoder, method_config, **arguments)
        features = method.counting_features(task, encoder, method_config, **arguments)
    with stages.stage("counting categories"):
        targets = torch.from_numpy(task.targets).to(features.device)
        return estimate_categories(features, targets, seed=config.seed)
