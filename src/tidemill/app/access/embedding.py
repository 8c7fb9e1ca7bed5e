"""A worker inside the program that has the app."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tidemill.app.accepting import yes_or_no
from tidemill.app.access.in_worker import AppInWorker
from tidemill.app.enqueueing.options import read_seconds
from tidemill.model.errors import BadInput
from tidemill.model.names import check_queue
from tidemill.model.time import SECOND
from tidemill.task.definition import module_of
from tidemill.worker.config import SLOTS_LIMIT, WorkerConfig
from tidemill.worker.process.embedded import EmbeddedWorker

if TYPE_CHECKING:
    from tidemill.app.tidemill import Tidemill


def embed(
    app: "Tidemill",
    *,
    slots: int | None,
    queues: Sequence[str] | None,
    shutdown_timeout: float | None,
    controller: bool,
) -> EmbeddedWorker:
    """The worker that the app's settings and these arguments ask for. While it works, async calls of the app
    on its loop use its engine."""
    settings = app.settings
    if queues is not None:
        if isinstance(queues, str) or not isinstance(queues, Iterable):
            raise BadInput(f"queues= takes a list of names: queues=[{queues!r}]")
        queues = [check_queue(name) for name in queues]
    if slots is not None and (type(slots) is not int or not 1 <= slots <= SLOTS_LIMIT):
        raise BadInput(f"slots= is a whole number from 1 to {SLOTS_LIMIT:,}, not {slots!r}")
    if shutdown_timeout is not None:
        shutdown_timeout = read_seconds("shutdown_timeout", shutdown_timeout) / SECOND
    yes_or_no("controller", controller)
    for definition in app.registry.definitions():
        definition.signature.check()
    named = settings.app or _name_of(app)
    if not named and any(definition.runs_in == "process" for definition in app.registry.definitions()):
        raise BadInput(
            'tasks with runs_in="process" run in processes that import the app: make it a variable of a '
            "module that can be imported, or set TIDEMILL_APP=module:attribute"
        )
    config = WorkerConfig(
        url=app.url,
        namespace=app.namespace,
        app=named,
        roles=("worker", "controller") if controller else ("worker",),
        queues=settings.queues if queues is None else tuple(queues),
        slots=settings.slots if slots is None else slots,
        heartbeat_s=settings.heartbeat,
        lease_s=settings.lease,
        sweep_s=settings.sweep,
        shutdown_timeout_s=settings.shutdown_timeout if shutdown_timeout is None else shutdown_timeout,
        cancel_grace_s=settings.cancel_grace,
        log_format=settings.log_format,
    )
    return EmbeddedWorker(app.registry, config, adopt=AppInWorker(app).adopt)


def _name_of(app: "Tidemill") -> str:
    """`module:attribute` of the app, found where its tasks are defined; "" if it is nowhere to be found."""
    for definition in app.registry.definitions():
        module = sys.modules.get(definition.function.__module__)
        for name, value in vars(module).items() if module is not None else ():
            if value is app:
                return f"{module_of(definition.function)}:{name}"
    return ""
