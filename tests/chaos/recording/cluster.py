"""The facets of a cluster: members, elections, schedules, declared queues."""

import time
from typing import Any

from tests.chaos.history import Phase, Recorder
from tests.chaos.queues import VALVE
from tests.chaos.recording.facet import Facet, phase_of
from tests.chaos.weather import Weather
from tidemill.engine.protocol import Engine
from tidemill.model.view import CONTROLLER_LEASE


class RecordedMembers(Facet):
    """The `members` facet."""

    def __init__(self, engine: Engine, recorder: Recorder, weather: Weather) -> None:
        super().__init__(engine.members, recorder, weather)

    async def heartbeat(self, info: Any, claimants: Any = (), **options: Any) -> Any:
        began, about = time.monotonic(), {"member": info.id.hex(), "text": info.name}
        try:
            reply = await self._ask("heartbeat", lambda: self._facet.heartbeat(info, claimants, **options))
        except BaseException as error:
            self._recorder.write("heartbeat", phase=phase_of(error), began=began, **about)
            raise
        self._recorder.write(
            "heartbeat", phase="ok", began=began, engine_at=reply.now, number=reply.number, **about
        )
        return reply


class RecordedLeases(Facet):
    """The `leases` facet: who was elected, and in which term."""

    def __init__(self, engine: Engine, recorder: Recorder, weather: Weather) -> None:
        super().__init__(engine.leases, recorder, weather)
        self.term = 0
        """The last in which this process was elected."""

    async def acquire(self, name: str, **options: Any) -> Any:
        began = time.monotonic()
        lease = await self._ask("acquire", lambda: self._facet.acquire(name, **options))
        if lease is not None:
            if name == CONTROLLER_LEASE:
                self.term = lease.fence
            self._recorder.write(
                "acquire", phase="ok", began=began, text=name, number=lease.fence, member=options["holder"],
                engine_at=lease.expires_at,
            )  # fmt: skip
        return lease

    async def renew(self, name: str, **options: Any) -> Any:
        began = time.monotonic()
        renewed = await self._ask("renew", lambda: self._facet.renew(name, **options))
        phase: Phase = "ok" if renewed else "failed"
        self._recorder.write("renew", phase=phase, began=began, text=name, number=options["fence"])
        return renewed


class RecordedSchedules(Facet):
    """The `schedules` facet: which tick was fired, and under which term."""

    def __init__(self, engine: Engine, recorder: Recorder, weather: Weather, leases: RecordedLeases) -> None:
        super().__init__(engine.schedules, recorder, weather)
        self._leases = leases

    async def fire(self, name: str, **options: Any) -> Any:
        op = self._recorder.invoked(
            "fire", text=name, number=self._leases.term, engine_at=options["tick"] or 0,
            jobs=[job.id.hex() for job in options["jobs"]],
        )  # fmt: skip
        try:
            fired = await self._ask("fire", lambda: self._facet.fire(name, **options))
        except BaseException as error:
            self._recorder.write("fire", op=op, phase=phase_of(error))
            raise
        self._recorder.write("fire", op=op, phase="ok", answers=["late" if fired is None else "fired"])
        return fired


class RecordedQueues(Facet):
    """The `queues` facet: what was declared of the queue whose options change, and by whom."""

    def __init__(self, engine: Engine, recorder: Recorder, weather: Weather) -> None:
        super().__init__(engine.queues, recorder, weather)

    async def declare(self, app: str, declarations: Any, **options: Any) -> None:
        said = declarations.get(VALVE)
        if said is None:
            return await self._ask("declare", lambda: self._facet.declare(app, declarations, **options))
        op = self._recorder.invoked(
            "declare", engine_at=said.declared_at, text=str(said.fields["concurrency"])
        )
        try:
            await self._ask("declare", lambda: self._facet.declare(app, declarations, **options))
        except BaseException as error:
            self._recorder.write("declare", op=op, phase=phase_of(error))
            raise
        self._recorder.write("declare", op=op, phase="ok")
        return None
