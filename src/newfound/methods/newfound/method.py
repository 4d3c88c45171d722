"""The method `newfound`: initial clustering, neighbour contrast, pseudo-label training.

K-means with pinned labels lets known categories absorb similar novel ones. So the initial
clustering uses spectral features, the probability that a text is known, and a class prior; the
encoder then learns from neighbours, labels and pseudo-labels.

1. Encode the texts, and add TF-IDF/LSA features weighted by what the labels show (`lsa_features`).
2. If the number of categories was not given, cluster into far too many and merge what the labels
   show to be one (`counting`, `merging`).
3. Estimate the probability that each text is known from the labels near it (`known_prior`).
4. Find an initial clustering: k-means on the spectral features of the neighbour graph, and rounds
   of pseudo-label training on fixed points; a first round with weakly held sizes gives the class
   prior; the best of several clusterings is kept (`initialisation`, `class_prior`).
5. If the encoder learns: train it by neighbour contrast (`contrast`), and repeat step 3 with the
   new features.
6. Start a cosine classifier at the means of the initial clustering, and train it with the encoder,
   or with a head on it, on labels and pseudo-labels (`pseudo_labels`).
7. The classifier's directions are the prototypes: known ones first, and a text belongs to the
   nearest.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.checkpoints import Kept
from newfound.clustering.estimate import Estimate
from newfound.clustering.neighbours import nearest_neighbours, neighbour_count
from newfound.clustering.prototypes import class_means
from newfound.clustering.spectral import LINKS
from newfound.data.task import Task
from newfound.encoding.batching import Ragged
from newfound.encoding.feature_cache import features_of
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.methods.finalisation import make_fitted
from newfound.methods.fitted import Fitted
from newfound.methods.newfound.config import NewfoundConfig
from newfound.methods.newfound.contrast import train_contrast
from newfound.methods.newfound.counting import count_categories
from newfound.methods.newfound.initialisation import initial_clustering
from newfound.methods.newfound.known_prior import known_log_odds
from newfound.methods.newfound.lsa_features import join_features, weighted_lsa_features
from newfound.methods.newfound.pseudo_labels import Priors, train_pseudo_labels
from newfound.progress import Stages
from newfound.training.cosine_classifier import CosineClassifier
from newfound.training.preparation import (
    Encoded,
    Prepared,
    encode_texts,
    encoded_features,
    prepare,
)


def fit(
    task: Task,
    encoder: AnyEncoder,
    config: NewfoundConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories with the method of this project.

    Parameters
    ----------
    task : Task
    encoder : Encoder
    config : NewfoundConfig
    seed : int
    stages : Stages
    cache : Path, optional
        Folder for the output of frozen layers and for pretrained weights.

    Returns
    -------
    Fitted
    """

    def estimate(encoded: Encoded) -> Estimate:
        return _kept_count(encoded, task, config, seed=seed, stages=stages)

    # 1. and 2. Encode, count, pretrain.
    prepared = prepare(
        task,
        encoder,
        config.preparation(),
        trainable_layers=config.trainable_layers,
        seed=seed,
        stages=stages,
        cache=cache,
        estimate=estimate,
    )
    with stages.stage("comparing texts"):
        features = features_of(prepared.model, prepared.inputs)
        lsa = _lsa_features(prepared.tokens, task, config, features)
        count = neighbour_count(len(features), prepared.k, config.neighbour_share)
        neighbours = nearest_neighbours(join_features(features, lsa), max(count, LINKS))
    return _fit(prepared, task, config, features, lsa, neighbours, count, seed=seed, stages=stages)


def _fit(
    prepared: Prepared,
    task: Task,
    config: NewfoundConfig,
    features: Tensor,
    lsa: Tensor,
    neighbours: Tensor,
    count: int,
    *,
    seed: int,
    stages: Stages,
) -> Fitted:
    """Run steps 3 to 7; the first `count` neighbours are close enough to tell what is known."""
    model, inputs, k = prepared.model, prepared.inputs, prepared.k
    history = prepared.pretrained.history
    points = join_features(features, lsa)
    # 3. Which texts are known.
    log_odds = _log_odds(points, neighbours[:, :count], task)
    # 4. Initial clustering.
    initial = initial_clustering(
        points,
        neighbours,
        task,
        k,
        config,
        log_odds,
        seed=seed,
        stages=stages,
        estimated=prepared.estimate is not None,
    )
    history += initial.history
    # 5. Neighbour contrast.
    if config.epochs:
        train_contrast(prepared, features, task, config, seed=seed, stages=stages)
        with stages.stage("comparing texts"):
            features = features_of(model, inputs)
            points = join_features(features, lsa)
            log_odds = _log_odds(points, nearest_neighbours(points, count), task)
    # 6. Pseudo-label training.
    classifier = CosineClassifier(
        class_means(features, initial.labels, k),
        features.mean(0),
        config.classifier_learning_rate_factor,
    )
    history += train_pseudo_labels(
        model,
        inputs,
        classifier,
        features,
        task,
        config.pseudo_labels(len(task.texts), k),
        Priors(log_odds, config.known_prior, initial.class_prior),
        seed=seed,
        stages=stages,
        stage="pseudo-labels",
    )
    # 7. Prototypes.
    with stages.stage("finalising"):
        features = features_of(model, inputs)
        return make_fitted(
            model,
            task,
            features,
            classifier.prototypes(features),
            inputs=inputs,
            estimate=prepared.estimate,
            history=history,
        )


def estimate(
    task: Task,
    encoder: AnyEncoder,
    config: NewfoundConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Estimate:
    """Estimate the number of categories as `fit` does."""
    encoded = encode_texts(task, encoder, config.preparation(), stages=stages, cache=cache)
    with stages.stage("counting categories"):
        return _count(encoded, task, config, seed=seed)


def _count(encoded: Encoded, task: Task, config: NewfoundConfig, *, seed: int) -> Estimate:
    """Count the categories with the features before any training."""
    features = encoded_features(encoded)
    points = join_features(features, _lsa_features(encoded.tokens, task, config, features))
    return count_categories(points, task, config, seed=seed)


def _kept_count(
    encoded: Encoded, task: Task, config: NewfoundConfig, *, seed: int, stages: Stages
) -> Estimate:
    """Count the categories, or load the count of an earlier command."""

    def work() -> Kept:
        return Kept(_count(encoded, task, config, seed=seed).to_dict())

    kept = stages.checkpoints.compute("counting", work)
    return Estimate.from_dict(kept.value, "the kept count")


def _lsa_features(tokens: Ragged, task: Task, config: NewfoundConfig, features: Tensor) -> Tensor:
    """Return weighted LSA features [N, w] beside these features; w is 0 if they are off."""
    if not config.lsa_features:
        return features.new_empty(len(features), 0)
    targets = torch.from_numpy(task.targets).to(features.device)
    return weighted_lsa_features(tokens, features, targets, config.neighbour_share)


def _log_odds(points: Tensor, neighbours: Tensor, task: Task) -> Tensor:
    """Return the log-odds [N] that a text is known, by the labels of its neighbours [N, n]."""
    targets = torch.from_numpy(task.targets).to(points.device)
    return known_log_odds(F.normalize(points.float(), dim=1), neighbours, targets)
