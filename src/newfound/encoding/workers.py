"""Batches side by side on a CPU: each in a thread of its own, in place of many threads in each.

Threads inside a matrix product wait for each other after every one, for long where another program
uses the machine too. Threads with a batch each meet only at the end.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from newfound.progress import Advance

MOST = 16  # workers; more would wait for Python's own lock


def run_batches(
    work: Callable[[np.ndarray], None],
    batches: Sequence[np.ndarray],
    device: torch.device,
    advance: Advance | None = None,
) -> None:
    """Call `work` with the rows of every batch, in inference mode; in no fixed order on a CPU.

    A batch must write to places of its own. What it gives does not depend on who works on it, as
    all workers have the same number of threads.
    """
    threads = torch.get_num_threads()
    workers = min(threads, MOST, len(batches)) if device.type == "cpu" else 1

    @torch.inference_mode()
    def infer(rows: np.ndarray) -> int:
        work(rows)
        return len(rows)

    def tell(done: int) -> None:
        if advance:
            advance(done)

    if workers <= 1:
        for rows in batches:
            tell(infer(rows))
        return
    share = max(1, threads // workers)
    try:
        with ThreadPoolExecutor(workers, "encode", torch.set_num_threads, (share,)) as pool:
            for done in pool.map(infer, batches):
                tell(done)
    finally:
        torch.set_num_threads(threads)  # what a worker sets, threads begun later would take over
