"""Run batches in parallel on a CPU, with one thread per batch.

Threads inside a matrix product wait for each other after every product, which takes long if other
programs use the CPU. Threads that each run a whole batch wait only at the end.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from newfound.devices import available_threads
from newfound.progress import Advance

MAX_WORKERS = 32  # more would wait for Python's global interpreter lock


def run_batches(
    work: Callable[[np.ndarray], None],
    batches: Sequence[np.ndarray],
    device: torch.device,
    advance: Advance | None = None,
    *,
    skip: int = 0,
) -> None:
    """Call `work` with the rows of every batch, in inference mode.

    On a CPU batches run in parallel and in no fixed order, so each must write to separate rows.
    Every batch is computed by one thread, so results do not depend on the number of threads.

    Parameters
    ----------
    work : callable
        Called with the rows of a batch.
    batches : sequence of ndarray
    device : torch.device
    advance : callable, optional
        Called with the number of rows of each finished batch, in the order of the batches.
    skip : int
        Number of batches at the start that are not run.
    """

    @torch.inference_mode()
    def infer(rows: np.ndarray) -> int:
        work(rows)
        return len(rows)

    def report(done: int) -> None:
        if advance:
            advance(done)

    threads, before = available_threads(), torch.get_num_threads()
    if device.type != "cpu" or threads == 1:
        for rows in batches[skip:]:
            report(infer(rows))
        return
    workers = max(1, min(threads, MAX_WORKERS, len(batches) - skip))
    try:
        with ThreadPoolExecutor(workers, "encode", torch.set_num_threads, (1,)) as pool:
            for done in pool.map(infer, batches[skip:]):
                report(done)
    finally:
        torch.set_num_threads(before)  # new threads would inherit the workers' setting
