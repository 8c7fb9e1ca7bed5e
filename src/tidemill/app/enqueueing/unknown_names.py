"""Warnings of names that may be misspelt. Jobs in a queue that nobody takes, or of a task that nobody has,
wait for ever, and nothing fails.

They are warnings because the name may be known elsewhere, or later. Each name is named once in a process.
"""

import logging
from collections.abc import Iterable

from tidemill.model.names import nearest
from tidemill.task.registry import Registry

NAMED_LIMIT = 1_000
"""So many names are remembered. An app with more has made them on purpose."""

_named: set[tuple[str, str]] = set()
log = logging.getLogger("tidemill")


def warn_of_queue(registry: Registry, name: str, others: Iterable[str] = ()) -> None:
    """A job goes to this queue; `others`: queues that are known besides those of this app. An app without
    tasks and queues of its own knows nothing."""
    known = {*registry.queue_names(), *others}
    if name not in known and (registry.queues or registry.definitions()) and _is_new("queue", name):
        log.warning(
            "the queue %r is neither declared nor used by a task here%s its jobs wait until a worker takes "
            "it (if it is right, declare it: app.queue(%r))",
            name,
            nearest(name, sorted(known)) or ";",
            name,
        )


def warn_of_task(name: str, known: Iterable[str]) -> None:
    """A job is enqueued by the name of a task that neither this app nor the catalogue knows."""
    if _is_new("task", name):
        log.warning(
            "no task %r is known here or to any worker%s its jobs wait until a worker has it",
            name,
            nearest(name, sorted(known)) or ";",
        )


def _is_new(what: str, name: str) -> bool:
    if (what, name) in _named or len(_named) >= NAMED_LIMIT:
        return False
    _named.add((what, name))
    return True
