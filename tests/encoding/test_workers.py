"""Batches in parallel threads."""

import time

import numpy as np
import pytest
import torch

from newfound.encoding.workers import run_batches

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_every_batch_runs_once_and_is_reported():
    batches = np.split(np.arange(60), 12)
    seen, reported = np.zeros(60), []

    def work(rows):
        assert torch.is_inference_mode_enabled()
        seen[rows] += 1

    run_batches(work, batches, CPU, reported.append)
    assert (seen == 1).all()
    assert reported == [5] * 12


def test_thread_count_is_restored_and_workers_have_one_each():
    found = []
    run_batches(lambda rows: found.append(torch.get_num_threads()), [np.arange(2)] * 4, CPU)
    assert found == [1] * 4
    assert torch.get_num_threads() == 2


def test_single_batch_uses_one_thread():
    """So that its last digits do not depend on the number of threads."""
    found = []
    run_batches(lambda rows: found.append(torch.get_num_threads()), [np.arange(2)], CPU)
    assert found == [1]
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("skip", [0, 1, 3, 4])
def test_skipped_batches_do_not_change_the_threads_of_the_others(skip):
    found, reported = [], []

    def work(rows):
        found.append((int(rows[0]), torch.get_num_threads()))

    run_batches(work, np.split(np.arange(8), 4), CPU, reported.append, skip=skip)
    assert sorted(found) == [(2 * batch, 1) for batch in range(skip, 4)]
    assert reported == [2] * (4 - skip)


def test_empty_list_of_batches_does_nothing():
    run_batches(lambda rows: pytest.fail("nothing to do"), [], CPU)


def test_error_in_a_batch_is_raised():
    begun = []

    def work(rows):
        begun.append(rows[0])
        time.sleep(0.01)
        raise ValueError("no room")

    with pytest.raises(ValueError, match="no room"):
        run_batches(work, np.split(np.arange(400), 400), CPU)
    assert len(begun) < 400
    assert torch.get_num_threads() == 2


def test_results_are_identical_between_runs():
    weights, texts = torch.randn(384, 384), torch.randn(64, 33, 384)

    def once():
        found = torch.empty_like(texts)

        def work(rows):
            found[rows] = torch.tanh(texts[rows] @ weights)

        run_batches(work, np.split(np.arange(64), 16), CPU)
        return found

    first = once()
    assert all(torch.equal(first, once()) for _ in range(5))
