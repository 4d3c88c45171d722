"""What the service counts, in the format of Prometheus."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # memory, CPU seconds, open files
        PlatformCollector(registry=self.registry)
        own = self.registry
        self.requests = Counter(
            "newfound_requests", "Requests by path and status.", ["path", "status"], registry=own
        )
        self.seconds = Histogram(
            "newfound_predict_seconds",
            "Seconds of a request to /predict.",
            buckets=SECONDS,
            registry=own,
        )
        self.texts = Counter("newfound_texts", "Texts that were answered.", registry=own)
        self.batches = Histogram(
            "newfound_batch_texts", "Texts of a batch.", buckets=SIZES, registry=own
        )
        self.waiting = Gauge("newfound_waiting_texts", "Texts in the queue.", registry=own)
        self.reloads = Counter("newfound_reloads", "Reloads by outcome.", ["outcome"], registry=own)
        self.model = Gauge(
            "newfound_model_info", "The model that answers.", ["model", "precision"], registry=own
        )

    def page(self) -> bytes:
        """Return the metrics as text."""
        return generate_latest(self.registry)
