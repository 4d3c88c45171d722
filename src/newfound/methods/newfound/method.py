"""The method `newfound`: initial clustering, neighbour contrast, pseudo-label training.

K-means with pinned labels lets known categories absorb similar novel ones. So the initial
clustering uses split-merge moves, the probability that a text is known, and a class prior; the
encoder then learns from neighbours, labels and pseudo-labels.

1. Encode the texts; estimate the number of categories if it was not given (`preparation`).
2. Add TF-IDF/LSA features to the encoder's, weighted by what the labels show (`lsa_features`).
3. Estimate from the labels the probability that each text is known (`known_prior`) and the share of
   each category (`class_prior`).
4. Find an initial clustering: k-means, split-merge moves and rounds of pseudo-label training on
   fixed points; the best of several (`initialisation`).
5. If the encoder learns: train it by neighbour contrast (`contrast`), and repeat step 3's
   probabilities with the new features.
6. Start a cosine classifier at the means of the initial clustering, and train it with the encoder,
   or with a head on it, on labels and pseudo-labels (`pseudo_labels`).
7. The classifier's directions are the prototypes: known ones first, and a text belongs to the
   nearest.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from newfound.clustering.neighbours import nearest_neighbours, neighbour_count
from newfound.clustering.prototypes import class_means
from newfound.data.task import Task
from newfound.encoding.batching import Ragged
from newfound.encoding.feature_cache import features_of
from newfound.encoding.loading import Encoder
from newfound.methods.finalisation import make_fitted
from newfound.methods.fitted import Fitted
from newfound.methods.newfound.class_prior import estimate_class_prior, size_variation
from newfound.methods.newfound.config import NewfoundConfig
from newfound.methods.newfound.contrast import train_contrast
from newfound.methods.newfound.initialisation import best_initial_clustering
from newfound.methods.newfound.known_prior import known_log_odds
from newfound.methods.newfound.lsa_features import join_features, weighted_lsa_features
from newfound.methods.newfound.pseudo_labels import Priors, move_known_out, train_pseudo_labels
from newfound.progress import Stages
from newfound.training.cosine_classifier import CosineClassifier
from newfound.training.preparation import Encoded, encode_texts, encoded_features, prepare


def fit(
    task: Task,
    encoder: Encoder,
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
    # 1. Encode, count, pretrain.
    prepared = prepare(
        task,
        encoder,
        config,
        trainable_layers=config.trainable_layers,
        seed=seed,
        stages=stages,
        cache=cache,
        count_with=lambda encoded: _counting_points(encoded, task, config),
    )
    model, inputs, k = prepared.model, prepared.inputs, prepared.k
    history = prepared.pretrained.history
    with stages.stage("comparing texts"):
        # 2. Features and points.
        features = features_of(model, inputs)
        lsa = _lsa_features(prepared.tokens, task, config, features)
        points = join_features(features, lsa)
        # 3. Priors.
        priors = Priors(
            _log_odds(points, task, k, config),
            config.known_prior,
            _class_prior(task, k, config).to(points.device),
            size_variation(torch.from_numpy(task.targets)) if config.class_prior else 0.0,
        )
    # 4. Initial clustering.
    initial = best_initial_clustering(
        points,
        task,
        config.initialisation(len(task.texts)),
        priors,
        rounds=config.initialisation_rounds,
        runs=config.initialisations,
        split_merge_every=config.split_merge_every,
        seed=seed,
        stages=stages,
    )
    history += initial.history
    priors = replace(priors, class_prior=initial.class_prior)
    # 5. Neighbour contrast.
    if config.epochs:
        train_contrast(prepared, features, task, config, seed=seed, stages=stages)
        with stages.stage("comparing texts"):
            features = features_of(model, inputs)
            points = join_features(features, lsa)
            priors = replace(priors, known_log_odds=_log_odds(points, task, k, config))
    # 6. Pseudo-label training. No split-merge moves: from here on features move to where the labels
    # put them, so two categories that lie close look like one that was split.
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
        config.pseudo_labels(len(task.texts)),
        priors,
        seed=seed,
        stages=stages,
        stage="pseudo-labels",
    )
    # 7. Prototypes.
    with stages.stage("finalising"):
        features = features_of(model, inputs)
        prototypes = classifier.prototypes(features)
        free = features[torch.from_numpy(~task.learnable).to(features.device)]
        share = float(priors.class_prior[: len(task.known)].sum())
        prototypes = move_known_out(
            prototypes, classifier.origin, free, len(task.known), share, config.known_farther
        )
        return make_fitted(
            model, task, features, prototypes, estimate=prepared.estimate, history=history
        )


def counting_features(
    task: Task,
    encoder: Encoder,
    config: NewfoundConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Tensor:
    """Return the points [N, d] that `fit` counts categories with."""
    encoded = encode_texts(task, encoder, config, stages=stages, cache=cache)
    return _counting_points(encoded, task, config)


def _counting_points(encoded: Encoded, task: Task, config: NewfoundConfig) -> Tensor:
    """Return the untrained encoder's features and LSA features side by side [N, d]."""
    features = encoded_features(encoded)
    return join_features(features, _lsa_features(encoded.tokens, task, config, features))


def _lsa_features(tokens: Ragged, task: Task, config: NewfoundConfig, features: Tensor) -> Tensor:
    """Return weighted LSA features [N, w] beside these features; w is 0 if they are off."""
    if not config.lsa_features:
        return features.new_empty(len(features), 0)
    targets = torch.from_numpy(task.targets).to(features.device)
    return weighted_lsa_features(tokens, features, targets, config.neighbour_share)


def _log_odds(points: Tensor, task: Task, k: int, config: NewfoundConfig) -> Tensor:
    """Return the log-odds [N] that a text is known, by the labels near its point."""
    count = neighbour_count(len(points), k, config.neighbour_share)
    targets = torch.from_numpy(task.targets).to(points.device)
    return known_log_odds(nearest_neighbours(points, count), targets)


def _class_prior(task: Task, k: int, config: NewfoundConfig) -> Tensor:
    """Return the estimated class prior [K] of the texts whose label is not learnt from."""
    targets = torch.from_numpy(np.where(task.learnable, task.targets, -1))
    return estimate_class_prior(targets, k, from_labels=config.class_prior)
