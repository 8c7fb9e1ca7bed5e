"""Schedules: when the next job is due, and which job that is.

A tick is the instant for which a job is fired. The job's id is made from schedule and tick, so that
a second firing of the same tick is the same job, whoever fires it.
"""

import hashlib
from datetime import timedelta
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError

from penstock.model.errors import BadInput
from penstock.model.ids import JobId, id_at
from penstock.model.job import NewJob
from penstock.model.time import Instant, instant_of, moment_of, span_of

Missed = Literal["skip", "once", "all"]


class Cron(msgspec.Struct, frozen=True, kw_only=True, tag="cron"):
    """Five or six fields in a time zone; right at both changes of daylight saving."""

    fields: str
    tz: str = "UTC"

    def __post_init__(self) -> None:
        self.next_after(0)

    def next_after(self, moment: Instant) -> Instant:
        """The first tick after this moment."""
        try:
            start = moment_of(moment).astimezone(ZoneInfo(self.tz))
            return instant_of(next(CronSim(self.fields, start)))
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise BadInput(f"{self.tz!r} is not a time zone such as Europe/Berlin: {error}") from None
        except CronSimError as error:
            raise BadInput(
                f'{self.fields!r} is not a cron expression such as "0 3 * * sun": {error}'
            ) from None
        except StopIteration:
            raise BadInput(f"{self.fields!r} never comes due: check day and month") from None


class Every(msgspec.Struct, frozen=True, kw_only=True, tag="every"):
    """An interval counted from the end of the last run."""

    seconds: float

    def __post_init__(self) -> None:
        if span_of(self.seconds) == 0:
            raise BadInput("an interval must be longer than 0 s")

    def next_after(self, moment: Instant) -> Instant:
        """One interval later."""
        return moment + span_of(timedelta(seconds=self.seconds))


Timing: TypeAlias = Cron | Every


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as the engine keeps it."""

    name: str
    timing: Timing
    job: NewJob
    """The template: its id is ignored."""
    missed: Missed = "once"
    next_at: Instant | None = None
    """None: nothing is due until somebody sets it (a run in progress, or ended)."""
    last_at: Instant | None = None
    """The last tick fired."""
    paused: bool = False
    version: int = 0
    """Grows with every `put` that changed something."""


def tick_id(schedule: str, tick: Instant) -> JobId:
    """The id of the job that a schedule fires for a tick: its time in the time bits, a hash of both
    in the rest."""
    digest = hashlib.blake2b(f"{schedule}\0{tick}".encode(), digest_size=10).digest()
    return id_at(tick, digest)
