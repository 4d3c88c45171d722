"""The methods: one module or package each, one entry each in `METHODS`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from newfound.clustering.estimate import Estimate
from newfound.config import override
from newfound.errors import InputError
from newfound.methods import (
    autoencoding,
    cdac,
    dcn,
    deep_clustering,
    dpn,
    dtc,
    frozen_kmeans,
    glove,
    laskm,
    newfound,
    self_labelling,
    semi_kmeans,
)
from newfound.methods.fitted import Fitted
from newfound.training import preparation
from newfound.wording import suggestion


@dataclass(frozen=True)
class Method:
    """How a method is called, and what a user reads about it."""

    fit: Callable[..., Fitted]  # fit(task, encoder, config, seed=, stages=, cache=)
    config: type
    efforts: Mapping[str, Mapping[str, Any]]  # what each effort changes in the configuration
    summary: str
    reference: str
    uses_labels: bool = True
    keeps_encoder: bool = True  # whether the weights of the encoder are part of the model
    # The features [N, d] that `fit` counts categories with, from the same arguments as `fit`.
    counting_features: Callable[..., Tensor] = preparation.counting_features
    # The method's own estimate of the number of categories, from the same arguments as `fit`, where
    # it does not count such features with `clustering.n_categories`.
    estimate: Callable[..., Estimate] | None = None
    # How the method clusters features (features [N, d], k, seed -> clusters [N]) if it has no rule
    # for new texts, so that a test part has to be clustered by itself.
    cluster: Callable[[np.ndarray, int, int], np.ndarray] | None = None


METHODS: dict[str, Method] = {
    "newfound": Method(
        newfound.fit,
        newfound.NewfoundConfig,
        newfound.EFFORTS,
        "pseudo-labels by optimal transport from an initial clustering, neighbour contrast",
        "this project, docs/method.md",
        estimate=newfound.estimate,
    ),
    "dpn": Method(
        dpn.fit,
        dpn.DPNConfig,
        dpn.EFFORTS,
        "decoupled prototypes: labels guide the known categories, structure the novel ones",
        "An et al., Generalized Category Discovery with Decoupled Prototypical Network, AAAI 2023",
    ),
    "km-glove": Method(
        glove.fit_km,
        glove.KMGloVeConfig,
        glove.EFFORTS,
        "k-means on the mean GloVe vector of each text's words; needs newfound[glove] or a file",
        "MacQueen, Some methods for classification and analysis of multivariate observations, 1967",
        uses_labels=False,
        counting_features=glove.counting_features,
        keeps_encoder=False,
    ),
    "ag-glove": Method(
        glove.fit_ag,
        glove.AGGloVeConfig,
        glove.EFFORTS,
        "Ward's agglomerative clustering of the same vectors; needs newfound[glove] or a file",
        "Gowda & Krishna, Agglomerative clustering using the concept of mutual nearest "
        "neighbourhood, Pattern Recognition 1978",
        uses_labels=False,
        counting_features=glove.counting_features,
        cluster=glove.ward,
        keeps_encoder=False,
    ),
    "sae": Method(
        autoencoding.fit_sae,
        autoencoding.SAEConfig,
        autoencoding.EFFORTS,
        "k-means on the codes of an autoencoder of word weights",
        "Xie et al., Unsupervised Deep Embedding for Clustering Analysis, ICML 2016",
        uses_labels=False,
        counting_features=autoencoding.counting_features,
        keeps_encoder=False,
    ),
    "dec": Method(
        autoencoding.fit_dec,
        autoencoding.DECConfig,
        autoencoding.DEC_EFFORTS,
        "sae, then self-training of the soft assignments on their sharper version",
        "Xie et al., Unsupervised Deep Embedding for Clustering Analysis, ICML 2016",
        uses_labels=False,
        counting_features=autoencoding.counting_features,
        keeps_encoder=False,
    ),
    "dcn": Method(
        dcn.fit,
        dcn.DCNConfig,
        dcn.EFFORTS,
        "dec with the reconstruction error added",
        "Yang et al., Towards K-means-friendly Spaces, ICML 2017",
        uses_labels=False,
        counting_features=dcn.counting_features,
        keeps_encoder=False,
    ),
    "bert": Method(
        frozen_kmeans.fit,
        frozen_kmeans.FrozenConfig,
        frozen_kmeans.EFFORTS,
        "k-means on the features of the frozen encoder",
        "Devlin et al., BERT: Pre-training of Deep Bidirectional Transformers, NAACL 2019",
        uses_labels=False,
        counting_features=frozen_kmeans.counting_features,
    ),
    "deepcluster": Method(
        deep_clustering.fit_unsupervised,
        deep_clustering.DeepClusterConfig,
        deep_clustering.DEEPCLUSTER_EFFORTS,
        "trains on the clusters of k-means as pseudo-labels, with a new classifier every epoch",
        "Caron et al., Deep Clustering for Unsupervised Learning of Visual Features, ECCV 2018",
        uses_labels=False,
    ),
    "semi-km": Method(
        semi_kmeans.fit,
        semi_kmeans.SemiKMConfig,
        semi_kmeans.EFFORTS,
        "k-means with pinned labels on features pretrained on labels and masked words",
        "An et al., Generalized Category Discovery with Decoupled Prototypical Network, AAAI 2023",
    ),
    "semi-dc": Method(
        deep_clustering.fit,
        deep_clustering.SemiDCConfig,
        deep_clustering.EFFORTS,
        "deepcluster after pretraining on labels",
        "Caron et al., Deep Clustering for Unsupervised Learning of Visual Features, ECCV 2018",
    ),
    "dtc": Method(
        dtc.fit,
        dtc.DTCConfig,
        dtc.EFFORTS,
        "pretraining on labels, then self-training on assignments averaged over epochs",
        "Han et al., Learning to Discover Novel Visual Categories via Deep Transfer Clustering, "
        "ICCV 2019",
    ),
    "cdac+": Method(
        cdac.fit,
        cdac.CDACConfig,
        cdac.EFFORTS,
        "learns which pairs of texts are similar, from labels and from moving thresholds",
        "Lin et al., Discovering New Intents via Constrained Deep Adaptive Clustering with Cluster "
        "Refinement, AAAI 2020",
    ),
    "dac": Method(
        deep_clustering.fit,
        deep_clustering.DACConfig,
        deep_clustering.EFFORTS,
        "trains on the clusters of k-means as pseudo-labels, aligned between epochs",
        "Zhang et al., Discovering New Intents with Deep Aligned Clustering, AAAI 2021",
    ),
    "self-labeling": Method(
        self_labelling.fit,
        self_labelling.SelfLabellingConfig,
        self_labelling.EFFORTS,
        "a classifier learns from pseudo-labels of another view, by optimal transport",
        "Fini et al., A Unified Objective for Novel Class Discovery, ICCV 2021",
    ),
    "laskm": Method(
        laskm.fit,
        laskm.LASKMConfig,
        laskm.EFFORTS,
        "contrastive training on views and labels, then k-means with pinned labels",
        "Vaze et al., Generalized Category Discovery, CVPR 2022",
    ),
}


def find_method(name: str) -> Method:
    """Return the method of that name."""
    if name not in METHODS:
        advice = suggestion(name, METHODS, f"choose one of {', '.join(METHODS)}")
        raise InputError(f"the method {name!r} is unknown; {advice}")
    return METHODS[name]


def resolve_config(name: str, effort: str, changes: Mapping[str, Any] | None) -> Any:
    """Return a method's configuration: its defaults, the effort's preset, the user's changes."""
    method = find_method(name)
    config = override(method.config(), dict(method.efforts.get(effort, {})), f"method {name}")
    return override(config, dict(changes or {}), f"method {name}")


def trains_layers(config: Any) -> bool:
    """Return whether a method with this configuration trains layers of the encoder."""
    names = ("trainable_layers", "pretrain_layers")
    return any(getattr(config, name, 0) != 0 for name in names)


def choose_effort(
    name: str, effort: str | None, changes: Mapping[str, Any] | None, *, frozen: bool, gpu: bool
) -> tuple[str, Any]:
    """Return the effort of a run and the method's configuration.

    Parameters
    ----------
    name : str
        Name of the method.
    effort : str or None
        As the user gave it; None chooses one.
    changes : mapping, optional
        Settings that the user changed.
    frozen : bool
        Whether there are only vectors, so that no layer can be trained.
    gpu : bool
        Whether the run has a GPU.

    Returns
    -------
    effort : str
    config : object

    Raises
    ------
    InputError
        If there are only vectors and the method cannot work on them, or not with this effort.
    """
    if not frozen:
        effort = effort or ("best" if gpu else "balanced")
        return effort, resolve_config(name, effort, changes)
    if not find_method(name).keeps_encoder:
        raise InputError(
            f"the method {name} reads the words of texts and has no use for vectors; choose "
            "another method, or leave the vectors and the encoder out"
        )
    configs = {each: resolve_config(name, each, changes) for each in ("balanced", "fast", "best")}
    able = [each for each, config in configs.items() if not trains_layers(config)]
    if not able:
        raise InputError(
            f"the method {name} with these settings trains layers of an encoder, and there are "
            "only vectors; set the numbers of layers to 0 or choose another method"
        )
    effort = effort or able[0]
    if effort not in able:
        raise InputError(
            f"effort {effort} of the method {name} trains layers of an encoder, and there are only "
            f"vectors; use effort {' or '.join(sorted(able))}, or name an encoder that newfound "
            "trains (minilm, mpnet, bert or one of their families) and give texts alone"
        )
    return effort, configs[effort]
