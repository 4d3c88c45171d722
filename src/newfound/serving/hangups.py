"""SIGHUP while the service is not ready yet; a module of its own, which imports nothing slow."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def noting_hangup() -> Iterator[threading.Event]:
    """Yield an event that SIGHUP sets while the block runs, instead of ending the process."""
    came = threading.Event()
    if not hasattr(signal, "SIGHUP") or threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = signal.signal(signal.SIGHUP, lambda *_: came.set())
    try:
        yield came
    finally:
        signal.signal(signal.SIGHUP, before)
