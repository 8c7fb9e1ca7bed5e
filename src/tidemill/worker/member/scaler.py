"""The scaler: lets the number of a member's worker processes follow the load (`-p MIN..MAX`).

It samples ten times a second how many slots are occupied: a read of shared memory, so a blocked process is
seen as well. Once a second it polls the engine for what waits, and acts on what `model/scaling` decides.

Waiting jobs are those of queues that this member takes from and that are not paused. Other members take some
of them: its share is that of its slots among the slots of all live workers of the queue.

A poll that fails changes nothing, and the time until fewer processes are enough begins anew.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from math import ceil

from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineClosed, EngineError
from tidemill.model.member import Health, MemberRecord
from tidemill.model.scaling.demand import startable
from tidemill.model.scaling.processes import Scaling, WorkerLoad
from tidemill.model.time import MINUTE
from tidemill.worker.config import WorkerConfig
from tidemill.worker.member.processes import MemberProcesses
from tidemill.worker.member.worker_process import WorkerProcess

POLL_S = 1.0
"""The usual time between two polls. It is shorter if the setting of a wait is."""
SAMPLES = 10
"""How often occupied slots are counted between two polls."""
FADING = 0.8
"""What is left of older measurements of run times after a poll: about the last five polls count."""

log = logging.getLogger("tidemill.worker")


class Scaler:
    """Scales one member. `sample` is one round of its loop."""

    def __init__(
        self, engine: Engine, config: WorkerConfig, processes: MemberProcesses, *, member: bytes
    ) -> None:
        self._engine = engine
        self._config = config
        self._processes = processes
        self._member = member
        self._scaling = Scaling(config.process_range, wait_s=config.scale_wait_s, calm_s=config.scale_calm_s)
        self._poll_s = min(POLL_S, config.scale_wait_s / 2, config.scale_calm_s / 4)
        self._polled_at = time.monotonic()
        self._samples = 0
        self._occupied = 0.0
        """Sum over the samples of the share of slots that held a job."""
        self._finished: dict[bytes, int] = {}
        self._busy_s = self._ended = 0.0
        """Occupied slot seconds, and outcomes in that time; older ones fade."""

    async def sample(self) -> float:
        """Count occupied slots; poll when it is time. Returns how long to wait until the next round."""
        slots, ready = self._config.slots, self._ready()
        if ready:
            self._occupied += sum(min(slots, one.held_table.held()) / slots for one in ready) / len(ready)
            self._samples += 1
        if time.monotonic() - self._polled_at >= self._poll_s:
            await self._poll()
        return self._poll_s / SAMPLES

    async def _poll(self) -> None:
        now_s, ready = time.monotonic(), self._ready()
        passed_s, self._polled_at = now_s - self._polled_at, now_s
        occupied = self._occupied / self._samples if self._samples else 0.0
        self._occupied, self._samples = 0.0, 0
        self._measure(ready, occupied, passed_s)
        try:
            waiting = await self._startable()
        except EngineClosed:
            raise
        except EngineError as error:
            log.debug("the number of processes stays as it is: %s", error)
            self._scaling.forget()
            return
        working = len(self._processes.working())
        if not ready or not working:
            return
        load = WorkerLoad(
            processes=working,
            slots=self._config.slots,
            occupied=occupied,
            startable=waiting,
            run_s=self._busy_s / self._ended if self._ended >= 1 else None,
        )
        number = self._scaling.decide(load, now_s)
        if number != working:
            log.info(
                "%d worker processes instead of %d: %d jobs wait, %.0f%% of the slots are occupied",
                number,
                working,
                waiting,
                100 * occupied,
            )
            self._processes.scale_to(number)

    def _measure(self, ready: list[WorkerProcess], occupied: float, passed_s: float) -> None:
        """Note how long a job occupies a slot."""
        finished = {one.claimant: one.held_table.finished for one in ready}
        ended = sum(count - self._finished.get(claimant, 0) for claimant, count in finished.items())
        self._finished = finished
        self._busy_s = FADING * self._busy_s + occupied * passed_s * self._config.slots * len(ready)
        self._ended = FADING * self._ended + ended

    async def _startable(self) -> int:
        """This member's share of the jobs that free slots would start."""
        engine = self._engine
        counts, queues, members = await asyncio.gather(
            engine.inspect.counts(window=MINUTE), engine.queues.list(), engine.members.list()
        )
        options = {queue.name: queue.options for queue in queues if queue.paused_at is None}
        ours = self._queues()
        return ceil(
            sum(
                startable(one.ready, one.running, options[one.queue], self._config.scale_wait_s)
                * self._share(members, one.queue)
                for one in counts
                if one.ready and one.queue in options and one.queue in ours
            )
        )

    def _share(self, members: Sequence[MemberRecord], queue: str) -> float:
        """The part of a queue's jobs that is for this member."""
        own = self._config.slots * len(self._processes.working())
        others = sum(
            one.info.slots
            for one in members
            if one.health is not Health.GONE and one.info.id != self._member and queue in one.info.queues
        )
        return own / (own + others)

    def _queues(self) -> set[str]:
        """Those that its processes take from."""
        return {queue for one in self._processes.alive() if one.ready for queue in one.ready.queues}

    def _ready(self) -> list[WorkerProcess]:
        """The processes that take jobs and have loaded the app."""
        living = (respawn.process for respawn in self._processes.working())
        return [one for one in living if one is not None and one.ready is not None]
