"""A worker inside the program that has the app."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.worker.config import WorkerConfig
from penstock.worker.embedded import EmbeddedWorker

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock


def embed(
    app: "Penstock",
    *,
    slots: int | None,
    queues: Sequence[str] | None,
    shutdown_timeout: float | None,
) -> EmbeddedWorker:
    """The worker that the app's settings and these arguments ask for. While it works, async calls of the app
    on its loop use its engine."""
    settings = app.settings
    config = WorkerConfig(
        url=app.url,
        namespace=app.namespace,
        app=settings.app or "",
        queues=settings.queues if queues is None else tuple(queues),
        slots=settings.slots if slots is None else slots,
        beat_s=settings.beat,
        lease_s=settings.lease,
        sweep_s=settings.sweep,
        shutdown_timeout_s=settings.shutdown_timeout if shutdown_timeout is None else shutdown_timeout,
        cancel_grace_s=settings.cancel_grace,
        log_format=settings.log_format,
    )
    return EmbeddedWorker(app.registry, config, adopt=app.adopt)
