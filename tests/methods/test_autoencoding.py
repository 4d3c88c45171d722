"""SAE, DEC and DCN: refinements compared with formulas, and their effect."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from support.small_texts import SmallTask, small_task
from torch import Tensor

from newfound.clustering.assignment import assign
from newfound.clustering.kmeans import kmeans
from newfound.clustering.metrics import accuracy
from newfound.data.task import make_task
from newfound.encoding.loading import Encoder, load_encoder
from newfound.errors import InputError
from newfound.methods import METHODS, autoencoding, dcn, resolve_config
from newfound.methods.autoencoding import Coded, DECConfig, refine
from newfound.methods.dcn import DCNConfig, follow, train_published
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training import autoencoder
from newfound.training.autoencoder import AutoencoderFeatures, BagOfWords, codes_of
from newfound.training.losses.student_t import soft_assignment, target_distribution

QUICK: dict[str, Any] = {"epochs": 60, "batch": 16, "learning_rate": 3e-3}


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autoencoder, "HIDDEN", (24, 24, 32))


@pytest.fixture(scope="module")
def encoder(tiny_encoder: str) -> Encoder:
    return load_encoder(tiny_encoder)


@pytest.fixture(scope="module")
def task() -> SmallTask:
    return small_task()


def fit(method: str, encoder: Encoder, texts: list[str], seed: int = 0, **changes: Any) -> Fitted:
    wanted = make_task(texts, np.full(len(texts), -1), [], 4)
    config = resolve_config(method, "best", {**QUICK, **changes})
    return METHODS[method].fit(wanted, encoder, config, seed=seed, stages=Stages(False))


def score(fitted: Fitted, task: SmallTask) -> float:
    found = assign(fitted.training_features, fitted.prototypes, fitted.temperature)[0]
    return accuracy(found, task.truth, set()).all


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("sae", {}),
        ("dec", {"refine_learning_rate": 0.05, "refresh": 10}),
        ("dcn", {"refine_learning_rate": 0.05, "refresh": 10}),
        (
            "dcn",
            {"published": True, "published_learning_rate": 3e-3, "published_pretraining": 60},
        ),
    ],
    ids=["sae", "dec", "dcn", "published dcn"],
)
def test_easy_task_is_solved(
    encoder: Encoder, task: SmallTask, method: str, changes: dict[str, Any]
) -> None:
    assert score(fit(method, encoder, task.texts, **changes), task) > 90


def test_untrained_codes_are_less_accurate(encoder: Encoder, task: SmallTask) -> None:
    scores = {
        epochs: np.mean(
            [score(fit("sae", encoder, task.texts, s, epochs=epochs), task) for s in range(3)]
        )
        for epochs in (0, 60)
    }
    assert scores[60] > scores[0] + 10


# The refinement of DEC.


def coded(texts: list[str], k: int = 4, seed: int = 0, epochs: int = 10) -> Coded:
    """Return a briefly trained autoencoder and the centres of its codes."""
    torch.manual_seed(seed)
    model = AutoencoderFeatures.from_texts(texts, 100)
    bags = BagOfWords.from_csr(model.weights(texts), torch.device("cpu"))
    decoder, history = autoencoder.train_autoencoder(
        model, bags, epochs=epochs, batch=16, learning_rate=3e-3, seed=0, stages=Stages(False)
    )
    centres = kmeans(codes_of(model, bags), k, seed=0).centres
    return Coded(model, decoder, bags, history, centres, None)


def refined(start: Coded, reconstruction: float = 0.0, seed: int = 0, **changes: Any) -> Coded:
    chosen = {"refine_learning_rate": 0.05, "iterations": 60, "refresh": 20, "tolerance": 0.0}
    config = dataclasses.replace(DECConfig(), **{**chosen, **changes})
    refine(start, config, reconstruction, seed, Stages(False))
    return start


def refreshes(start: Coded) -> list[dict[str, Any]]:
    return [line for line in start.history if line["stage"] == "refining"]


def confidence(start: Coded) -> float:
    return float(soft_assignment(codes_of(start.model, start.bags), start.centres).amax(1).mean())


def test_refinement_step_equals_the_formula(task: SmallTask) -> None:
    start, other = coded(task.texts), coded(task.texts)
    refined(start, 0.3, iterations=2, refine_batch=1000, refresh=1, momentum=0.5)
    weights = [*other.model.encoder.parameters(), *other.decoder.parameters(), other.centres]
    other.centres.requires_grad_()
    optimiser = torch.optim.SGD(weights, lr=0.05, momentum=0.5)
    given = other.bags.dense(torch.arange(len(other.bags)))
    for _ in range(2):
        codes = other.model.encoder(given)
        q = soft_assignment(codes, other.centres)
        p = target_distribution(q)
        loss = (p * (p / q).log()).sum() / len(q)
        loss = loss + 0.3 * (other.decoder(codes) - given).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    torch.testing.assert_close(start.centres, other.centres.detach(), atol=1e-5, rtol=1e-4)
    for mine, wanted in zip(
        start.model.encoder.parameters(), other.model.encoder.parameters(), strict=True
    ):
        torch.testing.assert_close(mine, wanted, atol=1e-5, rtol=1e-4)


def test_targets_belong_to_texts_in_any_order(task: SmallTask) -> None:
    # One batch of all texts in two orders gives the same steps if targets belong to texts.
    one, two = (refined(coded(task.texts), seed=s, refine_batch=1000) for s in (0, 1))
    torch.testing.assert_close(one.centres, two.centres, atol=1e-4, rtol=1e-3)


def test_refinement_makes_assignments_more_confident(
    task: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = confidence(coded(task.texts))
    after = confidence(refined(coded(task.texts)))
    assert after > before + 0.05
    monkeypatch.setattr(autoencoding, "target_distribution", lambda q: q)
    without = confidence(refined(coded(task.texts)))
    assert without == pytest.approx(before, abs=1e-4)


def test_targets_are_recomputed(task: SmallTask) -> None:
    often = confidence(refined(coded(task.texts), refresh=5))
    never = confidence(refined(coded(task.texts), refresh=1000))
    assert often > never + 0.02


def test_first_refresh_does_not_stop_refinement(task: SmallTask) -> None:
    # With this tolerance every later refresh stops; the first has nothing to compare with.
    start = coded(task.texts)
    before = start.centres.clone()
    refined(start, tolerance=1.0, refresh=7, iterations=100)
    assert [line["step"] for line in refreshes(start)] == [0, 7]
    assert refreshes(start)[0]["moved"] is None
    assert not torch.equal(start.centres, before)


def test_refinement_ends_after_its_iterations(task: SmallTask) -> None:
    start = refined(coded(task.texts), iterations=45, refresh=20)
    assert [line["step"] for line in refreshes(start)] == [0, 20, 40]
    before = coded(task.texts)
    assert torch.equal(refined(coded(task.texts), iterations=0).centres, before.centres)
    assert not start.centres.requires_grad


def test_divergence_raises_an_input_error(task: SmallTask) -> None:
    with pytest.raises(InputError, match="smaller refine_learning_rate"):
        refined(coded(task.texts), refine_learning_rate=1e30)


# DCN.


def error(start: Coded) -> float:
    given = start.bags.dense(torch.arange(len(start.bags)))
    with torch.no_grad():
        return float((start.decoder(start.model.encoder(given)) - given).square().mean())


def test_dcn_keeps_the_reconstruction_error_low(task: SmallTask) -> None:
    chosen: dict[str, Any] = {"iterations": 200, "refine_learning_rate": 0.2}
    dec = error(refined(coded(task.texts, epochs=60), **chosen))
    dcn = error(refined(coded(task.texts, epochs=60), 3.0, **chosen))
    assert dcn < 0.8 * dec


def test_only_dcn_weights_the_reconstruction(
    encoder: Encoder, task: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights: list[float] = []
    for module in (autoencoding, dcn):
        monkeypatch.setattr(
            module, "refine", lambda coded, config, weight, seed, stages: weights.append(weight)
        )
    for method in ("sae", "dec", "dcn"):
        fit(method, encoder, task.texts, epochs=1)
    assert weights == [0.0, 0.1]


def test_centres_follow_codes_one_by_one() -> None:
    draw = torch.Generator().manual_seed(0)
    centres, counts = torch.randn(3, 2, generator=draw), torch.tensor([100.0, 100.0, 7.0])
    codes = torch.randn(20, 2, generator=draw)
    clusters = torch.randint(2, (20,), generator=draw)  # the third cluster is empty
    wanted, seen = centres.clone(), counts.clone()
    for code, cluster in zip(codes, clusters, strict=True):
        seen[cluster] += 1
        wanted[cluster] += (code - wanted[cluster]) / seen[cluster]
    follow(centres, counts, codes, clusters)
    torch.testing.assert_close(centres, wanted)
    torch.testing.assert_close(counts, seen)


def spread(start: Coded) -> float:
    """Return the mean squared distance of codes to their centre, relative to their variance."""
    codes = codes_of(start.model, start.bags)
    near = torch.cdist(codes, start.centres).min(1).values.square().mean()
    return float(near / (codes - codes.mean(0)).square().sum(1).mean())


def test_published_dcn_pulls_codes_to_their_centres(task: SmallTask) -> None:
    def after(pull: float) -> float:
        start = coded(task.texts, epochs=30)
        config = dataclasses.replace(
            DCNConfig(), published_pull=pull, published_epochs=30, published_learning_rate=1e-3
        )
        train_published(start, config, 0, Stages(False))
        assert len(refreshes(start)) == 30
        return spread(start)

    assert after(1.0) < 0.7 * after(0.0)


def test_published_dcn_trains_its_own_autoencoder(encoder: Encoder, task: SmallTask) -> None:
    fitted = fit("dcn", encoder, task.texts, published=True, published_pretraining=3)
    epochs = [line["epoch"] for line in fitted.history if line["stage"] == "autoencoder"]
    assert epochs == [1, 2, 3]


# All three methods.


def test_nearest_prototype_has_the_largest_soft_assignment(
    encoder: Encoder, task: SmallTask
) -> None:
    fitted = fit("dec", encoder, task.texts, refine_learning_rate=0.05, refresh=10)
    codes, centres = (torch.from_numpy(x) for x in (fitted.features(task.texts), fitted.prototypes))
    near = assign(codes.numpy(), centres.numpy(), fitted.temperature)[0]
    assert (soft_assignment(codes, centres).argmax(1).numpy() == near).all()
    np.testing.assert_allclose(codes, fitted.training_features, atol=1e-4)


def test_dead_code_units_are_noted(encoder: Encoder, task: SmallTask) -> None:
    """Behind a ReLU, code units can be zero for every text."""
    woken = fit("sae", encoder, task.texts)
    assert not any("code units" in note for note in woken.notes)
    start = coded(task.texts)
    with torch.no_grad():
        start.model.encoder[-2].weight[:3] = -100.0
    wanted = make_task(task.texts, np.full(len(task.texts), -1), [], 4)
    notes = autoencoding.finalise_codes(wanted, start, "sae").notes
    assert notes == ["3 of the 10 code units are zero for every text"]


def test_cache_is_shared_by_the_three_methods(
    encoder: Encoder, task: SmallTask, tmp_path: Any
) -> None:
    wanted = make_task(task.texts, np.full(len(task.texts), -1), [], 4)
    found: dict[str, set[str]] = {}
    for method in ("sae", "dec", "dcn"):
        stages = Stages(False)
        config = resolve_config(method, "best", {**QUICK, "epochs": 2})
        METHODS[method].fit(wanted, encoder, config, seed=0, stages=stages, cache=tmp_path)
        found[method] = {stage for stage in stages.seconds if "autoencoder" in stage}
    assert found == {
        "sae": {"autoencoder"},
        "dec": {"autoencoder (kept)"},
        "dcn": {"autoencoder (kept)"},
    }


def test_features_are_on_the_device_of_the_encoder(encoder: Encoder, task: SmallTask) -> None:
    fitted = fit("sae", encoder, task.texts, epochs=1)
    device = encoder.backbone.words.weight.device
    assert fitted.features.device == device  # type: ignore[attr-defined]
    assert isinstance(fitted.training_features, np.ndarray)
    assert not isinstance(fitted.prototypes, Tensor)
