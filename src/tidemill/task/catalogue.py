"""What workers publish about their code: the catalogue of tasks, the declared queues and schedules.

Enqueue by name, HTTP and SQL read a task's defaults from the catalogue. A queue is configured as the code
declares it whenever a worker starts; a repeat changes nothing. So is a schedule, unless a worker that began
later has said otherwise: its code is newer (docs/decisions/0014-schedules.md).
"""

import msgspec

from tidemill.engine.protocol import BATCH_LIMIT, Engine
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import Instant
from tidemill.task.registry import Registry


async def publish(engine: Engine, registry: Registry) -> None:
    """Publish every task, and configure every queue that the app says something about."""
    entries = [registry.entry_of(found) for found in registry.definitions()]
    for start in range(0, len(entries), BATCH_LIMIT):
        await engine.tasks.publish(entries[start : start + BATCH_LIMIT])
    for name in registry.queue_names():
        options = registry.options_of(name)
        if name in registry.queues or options != QueueOptions():
            await engine.queues.configure(name, options)


async def publish_schedules(engine: Engine, registry: Registry, *, source: str, began: Instant) -> None:
    """Publish every schedule that the app's code declares; `began` is when this worker began."""
    declared = [make() for make in registry.schedules.values()]
    if not declared:
        return
    now = await engine.now()
    found = [
        msgspec.structs.replace(each, source=source, declared_at=began, next_at=each.timing.first_from(now))
        for each in declared
    ]
    for start in range(0, len(found), BATCH_LIMIT):
        await engine.schedules.put(found[start : start + BATCH_LIMIT])
