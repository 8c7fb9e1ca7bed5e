"""Start-up tasks of scope "worker": what every worker process does before it takes its first job.

They are calls, not jobs: no record, no retries, no timeout, in the order in which they were declared. One
that fails keeps its process from working: a worker whose cache, model or connection is missing would fail its
jobs one after the other.
"""

import asyncio
import logging

from tidemill.model.errors import StartupFailed
from tidemill.task.registry import Registry

log = logging.getLogger("tidemill.worker")


async def start_up(registry: Registry) -> None:
    """Run them all, one after the other."""
    for definition in registry.startups:
        try:
            if definition.is_async:
                await definition.function()
            else:
                await asyncio.to_thread(definition.function)
        except Exception as error:
            log.exception("the start-up task %s failed", definition.name)
            raise StartupFailed(
                f"the start-up task {definition.name} failed: {type(error).__name__}: {error}"
            ) from error
        log.debug("the start-up task %s has run", definition.name)
