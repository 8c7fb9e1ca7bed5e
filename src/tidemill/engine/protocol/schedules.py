"""The `schedules` facet."""

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import UNSET, UnsetType

from tidemill.model.jobs.job import NewJob, Stored
from tidemill.model.schedules.schedule import Schedule
from tidemill.model.time import Instant


class Fired(msgspec.Struct, frozen=True):
    """The answer to a firing that was made."""

    stored: list[Stored]
    """As enqueue answers it."""


class SchedulesFacet(Protocol):
    """For the controller, and for those who declare schedules."""

    async def put(self, schedules: Sequence[Schedule], *, by: str = "", now: Instant | None = None) -> None:
        """Add or replace by name. `last_at`, `line`, `kept` and `paused` stay; `retired_at` is cleared. If
        the timing is as before and it was not retired, `next_at` stays too, else it is taken from the
        argument.
        `version` grows if timing, job, missed, overlap, waiting, keep or source changed; that of a new
        schedule is no version that one of this name had before. A schedule with a
        `source` whose `declared_at` is lower than the stored one's changes nothing: newer code has spoken.
        Nor does a repeat. Checks every schedule by `check_schedule` before anything is stored."""
        ...

    async def list(self) -> "list[Schedule]":
        """All, by name."""
        ...

    async def fire(
        self,
        name: str,
        *,
        tick: Instant | None,
        before: Instant | None,
        next_at: Instant | None,
        jobs: Sequence[NewJob],
        last_at: Instant | None = None,
        line: Sequence[Instant] = (),
        kept: Sequence[Instant] = (),
        version: int | None = None,
        requested: bool = False,
        by: str = "",
        now: Instant | None = None,
    ) -> Fired | None:
        """Advance and insert in one step: if `next_at` is still `tick` and `last_at` still `before`, as the
        caller has read them (None: still none), and the schedule is neither paused nor retired, set the new
        `next_at` and enqueue the jobs. Otherwise None, and nothing changed: another caller was first, or this
        is a repeat (the jobs' ids come from their ticks).

        `last_at`: the tick of the last of the jobs, which is not `tick` where ticks were missed: by it the
        next firing finds the job; with it `line` and `kept` are stored. None leaves the stored ones: a
        firing without jobs passes the tick over. (What becomes of the jobs beyond `keep` is the caller's
        business: `model.schedules.keeping`.)
        `version`: fire only if the schedule still has this one, so that no time is set by an older timing.
        `requested`: a caller requests a run now, at a tick of its own; a pause does not refuse it."""
        ...

    async def pause(
        self,
        name: str,
        *,
        paused: bool,
        next_at: Instant | UnsetType | None = UNSET,
        version: int | None = None,
        by: str = "",
        now: Instant | None = None,
    ) -> bool:
        """Pause or resume. `next_at`, if given (None: nothing is due any more), is set if this call changed
        something: the ticks of a pause were not missed. With `version` it is left as it is if the schedule
        has another one: that change has set it. False: no such schedule."""
        ...

    async def retire(
        self,
        name: str,
        *,
        retired: bool,
        next_at: Instant | UnsetType | None = UNSET,
        version: int | None = None,
        by: str = "",
        now: Instant | None = None,
    ) -> bool:
        """Its code no longer declares it (`retired_at` = now), or does again. `next_at`, `version`: as with
        `pause`.
        False: no such schedule. A repeat keeps the first time."""
        ...

    async def remove(self, name: str, *, by: str = "", now: Instant | None = None) -> bool:
        """Delete it; its jobs stay. False: no such schedule (a repeat)."""
        ...
