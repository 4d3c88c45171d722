"""The methods: one file each, one entry each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from newfound.config import override
from newfound.errors import InputError
from newfound.methods import (
    autoencoding,
    cdac,
    dpn,
    dtc,
    frozen_kmeans,
    glove,
    laskm,
    newfound,
    pseudo_labels,
    self_labelling,
    semi_kmeans,
)
from newfound.methods.fitted import Fitted
from newfound.wording import suggestion


@dataclass(frozen=True)
class Method:
    """How a method is called and what to tell a user of it."""

    fit: Callable[..., Fitted]  # fit(task, encoder, config, seed=, stages=, cache=)
    config: type
    efforts: Mapping[str, Mapping[str, Any]]  # what each effort changes in the configuration
    summary: str
    reference: str
    uses_labels: bool = True
    # How the method groups features of its own (features [N, d], k, seed -> clusters [N]) where it
    # has no rule for new texts, so that a test part has to be grouped by itself.
    cluster: Callable[[np.ndarray, int, int], np.ndarray] | None = None


METHODS: dict[str, Method] = {
    "newfound": Method(
        newfound.fit,
        newfound.NewfoundConfig,
        newfound.EFFORTS,
        "categories drafted in rounds of balanced self-made labels, then contrast with neighbours",
        "this project, docs/method.md",
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
    ),
    "ag-glove": Method(
        glove.fit_ag,
        glove.AGGloVeConfig,
        glove.EFFORTS,
        "Ward's agglomerative clustering of the same vectors; needs newfound[glove] or a file",
        "Gowda & Krishna, Agglomerative clustering using the concept of mutual nearest "
        "neighbourhood, Pattern Recognition 1978",
        uses_labels=False,
        cluster=glove.ward,
    ),
    "sae": Method(
        autoencoding.fit_sae,
        autoencoding.SAEConfig,
        autoencoding.EFFORTS,
        "k-means on the codes of an autoencoder of word weights",
        "Xie et al., Unsupervised Deep Embedding for Clustering Analysis, ICML 2016",
        uses_labels=False,
    ),
    "dec": Method(
        autoencoding.fit_dec,
        autoencoding.DECConfig,
        autoencoding.DEC_EFFORTS,
        "sae, whose soft clusters then train themselves on their own sharper version",
        "Xie et al., Unsupervised Deep Embedding for Clustering Analysis, ICML 2016",
        uses_labels=False,
    ),
    "dcn": Method(
        autoencoding.fit_dcn,
        autoencoding.DCNConfig,
        autoencoding.DCN_EFFORTS,
        "dec that must still be able to give the text back",
        "Yang et al., Towards K-means-friendly Spaces, ICML 2017",
        uses_labels=False,
    ),
    "bert": Method(
        frozen_kmeans.fit,
        frozen_kmeans.FrozenConfig,
        frozen_kmeans.EFFORTS,
        "k-means on the features of the encoder as it is",
        "Devlin et al., BERT: Pre-training of Deep Bidirectional Transformers, NAACL 2019",
        uses_labels=False,
    ),
    "deepcluster": Method(
        pseudo_labels.fit_unsupervised,
        pseudo_labels.DeepClusterConfig,
        pseudo_labels.DEEPCLUSTER_EFFORTS,
        "learns the clusters of k-means as labels, with a new classifier every epoch",
        "Caron et al., Deep Clustering for Unsupervised Learning of Visual Features, ECCV 2018",
        uses_labels=False,
    ),
    "semi-km": Method(
        semi_kmeans.fit,
        semi_kmeans.SemiKMConfig,
        semi_kmeans.EFFORTS,
        "k-means on features that were pretrained on labels and masked words",
        "An et al., Generalized Category Discovery with Decoupled Prototypical Network, AAAI 2023",
    ),
    "semi-dc": Method(
        pseudo_labels.fit,
        pseudo_labels.SemiDCConfig,
        pseudo_labels.EFFORTS,
        "deepcluster after pretraining on labels",
        "Caron et al., Deep Clustering for Unsupervised Learning of Visual Features, ECCV 2018",
    ),
    "dtc": Method(
        dtc.fit,
        dtc.DTCConfig,
        dtc.EFFORTS,
        "after learning the labels, soft clusters train themselves on their average over epochs",
        "Han et al., Learning to Discover Novel Visual Categories via Deep Transfer Clustering, "
        "ICCV 2019",
    ),
    "cdac+": Method(
        cdac.fit,
        cdac.CDACConfig,
        cdac.EFFORTS,
        "learns which pairs of texts are alike, from labels and from thresholds that close in",
        "Lin et al., Discovering New Intents via Constrained Deep Adaptive Clustering with Cluster "
        "Refinement, AAAI 2020",
    ),
    "dac": Method(
        pseudo_labels.fit,
        pseudo_labels.DACConfig,
        pseudo_labels.EFFORTS,
        "learns the clusters of k-means as labels, numbered alike in every epoch by alignment",
        "Zhang et al., Discovering New Intents with Deep Aligned Clustering, AAAI 2021",
    ),
    "self-labeling": Method(
        self_labelling.fit,
        self_labelling.SelfLabellingConfig,
        self_labelling.EFFORTS,
        "a classifier learns from its own labels of another view, balanced over the categories",
        "Fini et al., A Unified Objective for Novel Class Discovery, ICCV 2021",
    ),
    "laskm": Method(
        laskm.fit,
        laskm.LASKMConfig,
        laskm.EFFORTS,
        "contrast of views and of labels, then k-means with pinned labels",
        "Vaze et al., Generalized Category Discovery, CVPR 2022",
    ),
}


def find_method(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        advice = suggestion(name, METHODS, f"choose one of {', '.join(METHODS)}")
        raise InputError(f"the method {name!r} is unknown; {advice}")
    return METHODS[name]


def resolve_config(name: str, effort: str, changes: Mapping[str, Any] | None) -> Any:
    """A method's configuration: its defaults, then the effort's preset, then the user's changes."""
    method = find_method(name)
    config = override(method.config(), dict(method.efforts.get(effort, {})), f"method {name}")
    return override(config, dict(changes or {}), f"method {name}")
