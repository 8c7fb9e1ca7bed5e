"""What workers publish about their code: the catalogue of tasks, the declared queues and schedules.

Enqueue by name, HTTP and SQL read a task's defaults from the catalogue. Queues and schedules are declared
whenever a worker starts; a repeat changes nothing. If a worker that started later has said otherwise, its
code is newer and counts (docs/decisions/0014-schedules.md, 0026-queue-options-in-two-layers.md).

What an engine refuses is named in one line of the log, and the rest is published: one queue, task or schedule
never keeps a worker from the others.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import msgspec

from tidemill.engine.protocol import BATCH_LIMIT, Engine
from tidemill.model.errors import BadInput
from tidemill.model.time import Instant
from tidemill.task.registry import Registry

T = TypeVar("T")

log = logging.getLogger("tidemill.worker")


async def publish(engine: Engine, registry: Registry, *, source: str, began: Instant) -> None:
    """Publish every task, and declare every queue that the app says something about; `began` is when the
    member started."""
    entries = {found.name: registry.entry_of(found) for found in registry.definitions()}
    await _in_batches("task", entries, lambda some: engine.tasks.publish(list(some.values())))
    names = registry.declared_queues()
    said = {name: found for name in names if (found := registry.declaration_of(name, began)) is not None}
    await _in_batches("queue", said, lambda some: engine.queues.declare(source, some))


async def publish_schedules(engine: Engine, registry: Registry, *, source: str, began: Instant) -> None:
    """Publish every schedule that the app's code declares; `began` is when this worker began."""
    made = {
        name: made for name, make in registry.schedules.items() if (made := _made(name, make)) is not None
    }
    if not made:
        return
    now = await engine.now()
    found = {
        name: msgspec.structs.replace(
            each, source=source, declared_at=began, next_at=each.timing.first_from(now)
        )
        for name, each in made.items()
    }
    await _in_batches("schedule", found, lambda some: engine.schedules.put(list(some.values())))


def _made(name: str, make: Callable[[], T]) -> T | None:
    try:
        return make()
    except BadInput as error:
        log.error("the schedule %s is not published: %s", name, error)
        return None


async def _in_batches(
    what: str, found: Mapping[str, T], publish_some: Callable[[Mapping[str, T]], Awaitable[None]]
) -> None:
    """Publish all; one by one where the engine refuses a batch."""
    items = list(found.items())
    for start in range(0, len(items), BATCH_LIMIT):
        batch = items[start : start + BATCH_LIMIT]
        try:
            await publish_some(dict(batch))
        except BadInput:
            for name, each in batch:
                try:
                    await publish_some({name: each})
                except BadInput as error:
                    log.error("the %s %s is not published: %s", what, name, error)
