"""The `jobs` facet: claims, outcomes, lost_runs."""

import time
from typing import Any

from tests.chaos.history import Recorder
from tests.chaos.recording.facet import Facet, phase_of
from tests.chaos.weather import Weather
from tidemill.engine.protocol import Engine


class RecordedJobs(Facet):
    """Everything about runs is written down; what a settle was about before it is asked."""

    def __init__(self, engine: Engine, recorder: Recorder, weather: Weather) -> None:
        super().__init__(engine.jobs, recorder, weather)

    async def claim(self, request: Any, **options: Any) -> Any:
        began = time.monotonic()
        try:
            claim = await self._ask("claim", lambda: self._facet.claim(request, **options))
        except BaseException as error:
            self._not_claimed(began, request, error)
            raise
        self._claimed(began, request, claim)
        return claim

    async def settle(self, settlements: Any, *, claim: Any = None, **options: Any) -> Any:
        began = time.monotonic()
        op = self._recorder.invoked(
            "settle",
            jobs=[one.id.hex() for one in settlements],
            fences=[one.fence for one in settlements],
            outcomes=[_named(one.outcome) for one in settlements],
        )
        try:
            settled = await self._ask(
                "settle", lambda: self._facet.settle(settlements, claim=claim, **options)
            )
        except BaseException as error:
            self._recorder.write("settle", op=op, phase=phase_of(error), text=str(error)[:200])
            if claim is not None:
                self._not_claimed(began, claim, error)
            raise
        self._recorder.write("settle", op=op, phase="ok", answers=[str(one) for one in settled.answers])
        if settled.claim is not None:
            self._claimed(began, claim, settled.claim)
        return settled

    async def release(self, releases: Any, **options: Any) -> Any:
        op = self._recorder.invoked(
            "release", jobs=[one.id.hex() for one in releases], fences=[one.fence for one in releases]
        )
        try:
            answers = await self._ask("release", lambda: self._facet.release(releases, **options))
        except BaseException as error:
            self._recorder.write("release", op=op, phase=phase_of(error))
            raise
        self._recorder.write("release", op=op, phase="ok", answers=[str(one) for one in answers])
        return answers

    async def retire(self, claimant: Any, lost_runs: Any = (), **options: Any) -> Any:
        op = self._recorder.invoked(
            "retire", jobs=[one.id.hex() for one in lost_runs], fences=[one.fence for one in lost_runs],
            outcomes=[one.verdict for one in lost_runs], claimant=claimant.hex(),
        )  # fmt: skip
        try:
            held = await self._ask("retire", lambda: self._facet.retire(claimant, lost_runs, **options))
        except BaseException as error:
            self._recorder.write("retire", op=op, phase=phase_of(error))
            raise
        self._recorder.write("retire", op=op, phase="ok", number=held)
        return held

    async def reclaim(self, member: Any, **options: Any) -> Any:
        began = time.monotonic()
        reclaimed = await self._ask("reclaim", lambda: self._facet.reclaim(member, **options))
        if reclaimed.jobs or reclaimed.gone:
            self._recorder.write(
                "reclaim", phase="ok", began=began, member=member.hex(), answers=reclaimed.gone,
                number=reclaimed.jobs,
            )  # fmt: skip
        return reclaimed

    def _not_claimed(self, began: float, request: Any, error: BaseException) -> None:
        """A repeat may bring jobs that this call took."""
        self._recorder.write(
            "claim", phase=phase_of(error), began=began, claimant=request.claimant.hex(),
            number=request.number,
        )  # fmt: skip

    def _claimed(self, began: float, request: Any, claim: Any) -> None:
        if claim.jobs:
            self._recorder.write(
                "claim", phase="ok", began=began, claimant=request.claimant.hex(), number=request.number,
                jobs=[job.id.hex() for job in claim.jobs], fences=[job.fence for job in claim.jobs],
                member=request.member.hex(), engine_at=claim.now,
            )  # fmt: skip


def _named(outcome: Any) -> str:
    return type(outcome).__name__.lower()
