"""Retires what apps declared of queues and declare no more.

With its heartbeats every worker says of which queues its code says something. The rule is that of schedules
(`retirement`): a declaration goes when workers of its app are alive, each of them has said what it declares,
and none of them has named the queue for `GRACE`. So a rolling deploy retires it once, when the last old
worker goes. A field that is deleted from a declaration that stays needs no retirement: the next start
replaces the whole declaration.

Each retirement names the declaration that it saw. If the app has declared the queue again meanwhile, nothing
changes. Operators' overrides stay.
"""

import logging

from tidemill.controller.ticks.retirement import BY, GRACE, MissingSince, judged_apps
from tidemill.controller.ticks.snapshot import HandClock
from tidemill.controller.ticks.tick import Term
from tidemill.engine.protocol import Engine
from tidemill.model.schedules.generation import live_workers
from tidemill.model.time import Instant, Span

EVERY_S = 2.0

log = logging.getLogger("tidemill.controller")


class DeclarationTick:
    """See `tidemill.controller.ticks.tick.Tick`. `clock`: for tests that move the time by hand."""

    name = "declarations"
    every = EVERY_S

    def __init__(self, *, grace: Span = GRACE, clock: HandClock | None = None) -> None:
        self._missing = MissingSince[tuple[str, str, Instant]](grace)
        self._clock = clock

    async def run(self, engine: Engine, term: Term) -> float | None:
        at = None if self._clock is None else self._clock.now
        queues = await engine.queues.list()
        if not any(queue.declared for queue in queues):
            return None
        now = await engine.now() if at is None else at
        workers = live_workers(await engine.members.list(now=at))
        declared = {(name, worker.info.app) for worker in workers for name in worker.info.declares or ()}
        judged = judged_apps(workers, lambda info: info.declares)
        missing = [
            (queue.name, app, each.declared_at)
            for queue in queues
            for app, each in queue.declared.items()
            if app in judged and (queue.name, app) not in declared
        ]
        for name, app, declared_at in self._missing.overdue(missing, now):
            if not term.trusted():
                return None
            if await engine.queues.retire(name, app, declared_at=declared_at, by=BY, now=at):
                log.warning(
                    "what %s declared of the queue %s is retired: no worker of it does any more", app, name
                )
        return None
