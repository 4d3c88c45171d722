"""Run batches in parallel on a CPU, with one thread per batch.

Threads inside a matrix product wait for each other after every product, which takes long if other
programs use the CPU. Threads that each run a whole batch wait only at the end.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from newfound.progress import Advance

MAX_WORKERS = 16  # more would wait for Python's global interpreter lock


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
    Results do not depend on the worker, because all workers have the same number of threads.

    Parameters
    ----------
    work : callable
        Called with the rows of a batch.
    batches : sequence of ndarray
    device : torch.device
    advance : callable, optional
        Called with the number of rows of each finished batch, in the order of the batches.
    skip : int
        Number of batches at the start that are not run. The others run with as many threads as if
        all did, because the last digit of a sum depends on the threads.
    """
    threads = torch.get_num_threads()
    workers = min(threads, MAX_WORKERS, len(batches)) if device.type == "cpu" else 1

    @torch.inference_mode()
    def infer(rows: np.ndarray) -> int:
        work(rows)
        return len(rows)

    def report(done: int) -> None:
        if advance:
            advance(done)

    if workers <= 1:
        for rows in batches[skip:]:
            report(infer(rows))
        return
    share = max(1, threads // workers)
    try:
        with ThreadPoolExecutor(workers, "encode", torch.set_num_threads, (share,)) as pool:
            for done in pool.map(infer, batches[skip:]):
                report(done)
    finally:
        torch.set_num_threads(threads)  # new threads would inherit the workers' setting
