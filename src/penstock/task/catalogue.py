"""What workers tell the engine about their code: the catalogue of tasks, and the declared queues.

Enqueue by name, HTTP and SQL read a task's defaults from the catalogue. A queue is configured as the code
declares it whenever a worker starts; a repeat changes nothing.
"""

from penstock.engine.protocol import BATCH_LIMIT, Engine
from penstock.model.queue import QueueOptions
from penstock.task.registry import Registry


async def publish(engine: Engine, registry: Registry) -> None:
    """Publish every task, and configure every queue that the app says something about."""
    entries = [found.entry(registry.default_queue) for found in registry.definitions()]
    for start in range(0, len(entries), BATCH_LIMIT):
        await engine.tasks.publish(entries[start : start + BATCH_LIMIT])
    for name in registry.queue_names():
        options = registry.options_of(name)
        if name in registry.queues or options != QueueOptions():
            await engine.queues.configure(name, options)
