"""`newfound estimate`: how many categories a corpus holds, without a whole discovery."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from newfound.batching import tokenize
from newfound.config import RunConfig
from newfound.corpus import Corpus
from newfound.devices import find_device, seeded
from newfound.encoder import load_encoder
from newfound.estimate import Estimate, estimate_categories
from newfound.features import EncoderFeatures
from newfound.frozen import features_of, run_frozen
from newfound.methods import resolve_config
from newfound.methods.dpn import DPNConfig, pretraining_config
from newfound.pretraining import frozen_count, pretrain
from newfound.stages import Stages
from newfound.task import make_task


def count_categories(
    corpus: Corpus, config: RunConfig, settings: Mapping[str, Any], stages: Stages
) -> Estimate:
    """Pretrain on what is labelled, then estimate the number of categories."""
    device = find_device(config.device)
    effort = config.effort or ("best" if device.type == "cuda" else "fast")
    method_config: DPNConfig = resolve_config("dpn", effort, settings)
    task = make_task(
        corpus.texts,
        corpus.targets,
        corpus.known,
        None,
        validation_share=config.validation_share,
        seed=config.seed,
    )
    with seeded(config.seed, device):
        encoder = load_encoder(config.encoder, pooling=config.pooling, max_tokens=config.max_tokens)
        encoder.backbone.to(device)
        model = EncoderFeatures(
            encoder, head=method_config.head, normalise=method_config.normalise
        ).to(device)
        depth = encoder.backbone.shape.layers
        model.freeze(frozen_count(method_config.pretrain_layers, depth))
        tokens = tokenize(encoder.tokenizer, task.texts, encoder.max_tokens)
        with stages.stage("encoding", len(tokens)) as advance:
            folder = Path(config.cache) if config.cache else None
            inputs = run_frozen(model, tokens, folder=folder, advance=advance)
        pretrain(
            model,
            task,
            tokens,
            pretraining_config(method_config),
            seed=config.seed,
            stages=stages,
            inputs=inputs,
        )
        features = features_of(model, inputs)
        with stages.stage("counting categories"):
            return estimate_categories(
                features, torch.from_numpy(task.targets).to(device), seed=config.seed
            )
