"""Ctrl-C and SIGTERM: both end a command by an exception, so that temporary files are removed."""

import signal
import sys
from typing import Any, NoReturn

AGAIN = 0.01  # seconds until an exception that was swallowed is raised again


def catch_signals() -> list[int]:
    """Let Ctrl-C and SIGTERM raise exceptions; return a list that receives their numbers.

    Python prints and swallows an exception that is raised while it destroys an object. The signal
    would be lost, so it is raised again a moment later.
    """
    received: list[int] = []
    hook = sys.unraisablehook

    def stop(number: int, frame: object) -> NoReturn:
        if number in (signal.SIGINT, signal.SIGTERM):
            received.append(number)
        if received[-1] == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + received[-1])

    def swallowed(unraisable: Any) -> None:
        ours = received and issubclass(unraisable.exc_type, KeyboardInterrupt | SystemExit)
        if ours and hasattr(signal, "setitimer"):  # a POSIX system
            signal.signal(signal.SIGALRM, stop)
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
        else:
            hook(unraisable)

    sys.unraisablehook = swallowed
    signal.signal(signal.SIGTERM, stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not ignored, as by nohup
        signal.signal(signal.SIGINT, stop)
    return received
