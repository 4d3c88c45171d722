"""`newfound estimate`: how many categories a corpus holds, without a discovery."""

from pathlib import Path

import torch

from newfound.clustering.n_categories import Estimate, estimate_categories
from newfound.config import RunConfig
from newfound.data.corpus import Corpus, check_corpus
from newfound.devices import find_device
from newfound.encoding.batching import tokenize
from newfound.encoding.feature_cache import features_of, run_frozen
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.methods.newfound.lsa_features import joined, weigh_words
from newfound.methods.newfound.method import NewfoundConfig
from newfound.progress import Stages


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
