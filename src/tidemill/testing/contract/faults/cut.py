"""Calls whose first answer was lost on the way: the table that `lost_reply` walks through.

A scenario prepares a stage and names one call, what a repeat of it answers, and whether the first call
changes anything that can be seen. Its name is the method, with an underscore after the facet, and perhaps a
case: `jobs_settle__of_a_tombstone`.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from msgspec.structs import replace

from tidemill.engine.protocol import Engine
from tidemill.model.jobs.job import NewJob, Stored
from tidemill.model.jobs.run import ClaimedJob
from tidemill.model.time import Instant
from tidemill.testing.contract.fixtures import Claimant, Clock


@dataclass
class Stage:
    """What a scenario plays on."""

    engine: Engine
    clock: Clock
    claimant: Claimant

    @property
    def now(self) -> Instant:
        return self.clock.now


def same(first: Any) -> Any:
    """The repeat answers what the first call did."""
    return first


def too_late(first: list[ClaimedJob]) -> list[ClaimedJob]:
    """The repeat of a claim has the same jobs; those under a rate should have started by now."""
    rated = [job for job in first if job.start_within is not None]
    assert rated
    return [job if job.start_within is None else replace(job, start_in=0, start_within=0) for job in first]


def known(jobs: Sequence[NewJob]) -> list[Stored]:
    """The repeat of an enqueue finds every job."""
    return [Stored(job.id, False) for job in jobs]


@dataclass
class Cut:
    """One call, made twice because its answer did not arrive."""

    call: Callable[[Engine], Awaitable[Any]]
    again: Callable[[Any], Any] = same
    """From the first answer, which nobody saw, to what the repeat has to answer."""
    changes: bool = True
    """Whether the first call changes what can be seen: a scenario must not play on an empty stage."""


Scenario: TypeAlias = Callable[[Stage], Awaitable[Cut]]

SCENARIOS: dict[str, Scenario] = {}


def scenario(prepare: Scenario) -> Scenario:
    """Enter a scenario in the table."""
    SCENARIOS[prepare.__name__] = prepare
    return prepare


def method_of(name: str) -> str:
    """The method that a scenario is about: `jobs.settle`."""
    return name.partition("__")[0].replace("_", ".", 1)
