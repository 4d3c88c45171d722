"""`newfound estimate`: how many categories a corpus holds, without a discovery."""

from pathlib import Path

import torch

from newfound.batching import tokenize
from newfound.config import RunConfig
from newfound.corpus import Corpus, check_corpus
from newfound.devices import find_device
from newfound.encoder import load_encoder
from newfound.estimate import Estimate, estimate_categories
from newfound.features import EncoderFeatures
from newfound.frozen import features_of, run_frozen
from newfound.lexical import joined, weigh_words
from newfound.methods.newfound import NewfoundConfig
from newfound.stages import Stages


def count_categories(corpus: Corpus, config: RunConfig, stages: Stages) -> Estimate:
    """Encode the texts and estimate the number of categories, as a discovery would."""
    check_corpus(corpus, None)
    device = find_device(config.device)
    encoder = load_encoder(config.encoder, pooling=config.pooling, max_tokens=config.max_tokens)
    model = EncoderFeatures(encoder, frozen_layers=encoder.backbone.shape.layers).to(device)
    tokens = tokenize(encoder.tokenizer, corpus.texts, encoder.max_tokens)
    with stages.stage("encoding", len(tokens)) as advance:
        folder = Path(config.cache) if config.cache else None
        inputs = run_frozen(model, tokens, folder=folder, advance=advance)
    with stages.stage("counting categories"):
        targets, features = torch.from_numpy(corpus.targets).to(device), features_of(model, inputs)
        words = weigh_words(tokens, features, targets, NewfoundConfig().neighbour_share)
        return estimate_categories(joined(features, words), targets, seed=config.seed)
