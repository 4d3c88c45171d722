"""Faults at chosen moments of a run, and a clock that tests set."""

from newfound.checkpoints import Checkpoints


class FakeClock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class FaultError(Exception):
    """A fault that a test causes."""


class FaultyCheckpoints(Checkpoints):
    """Checkpoints that raise `error` when the run records its place for the `limit`th time.

    A run records its place when a stage begins, after every batch that is encoded and after every
    epoch.
    """

    limit: float = float("inf")
    error: type[BaseException] = FaultError

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self.recorded = 0

    def at(self, stage: str, done: int, total: int | None) -> None:
        if self.active:
            self.recorded += 1
            if self.recorded >= self.limit:
                raise self.error
        super().at(stage, done, total)
