"""Which enqueues go together in one step: one rule for merging calls and for cutting many jobs into calls.

Merging pays: with 50 callers it stores twenty times as many jobs a second as one step for each. The producer
of an app merges (`app.producer`), for every engine alike, and `enqueue_many` cuts its chunks (`app.bulk`).
SQLite's writer merges again, because threads that write themselves do not pass the producer. Two things bound
a step:

- its number of jobs, `BATCH_LIMIT`;
- its size, `MERGED_BYTES`: a server reads a command whole, and others wait for it meanwhile.

Calls with unique keys go into steps of their own: they may wait for another transaction that holds a key, and
be refused, and neither may happen to others. Jobs of every other form go together: plain ones, those for
later, children. An engine has shorter ways for a call in which all jobs are plain, and chooses by itself. To
keep the forms apart was measured: it costs far more in steps than the short ways save
([why](../../../docs/decisions/0017-enqueues-merge-once.md)).
"""

from collections.abc import Iterable, Iterator, Sequence

from tidemill.engine.protocol.limits import BATCH_LIMIT
from tidemill.model.jobs.job import NewJob

MERGED_BYTES = 16 << 20
"""The most bytes of payload in one step of several calls. A single call may be larger: it stays whole."""


class StepRoom:
    """What one step still has room for."""

    __slots__ = ("_bytes", "_jobs", "_unique")

    def __init__(self) -> None:
        self._jobs = BATCH_LIMIT
        self._bytes = MERGED_BYTES
        self._unique: bool | None = None
        """Whether what is in the step has unique keys; None: it is empty."""

    @property
    def is_full(self) -> bool:
        return self._jobs <= 0 or self._bytes <= 0

    def put(self, jobs: Sequence[NewJob]) -> None:
        """These jobs are in the step, however large they are: a call stays whole."""
        self._jobs -= len(jobs)
        self._bytes -= bytes_of(jobs)
        self._unique = has_unique(jobs)

    def take(self, jobs: Sequence[NewJob]) -> bool:
        """Put these jobs into the step too, if there is room."""
        jobs_left, bytes_left = self._jobs - len(jobs), self._bytes - bytes_of(jobs)
        if jobs_left < 0 or bytes_left < 0:
            return False
        unique = has_unique(jobs)
        if jobs and self._unique is not None and self._unique is not unique:
            return False
        self._jobs, self._bytes = jobs_left, bytes_left
        if jobs:
            self._unique = unique
        return True


def has_unique(jobs: Sequence[NewJob]) -> bool:
    """Whether some of them have unique keys."""
    return any([job.unique is not None for job in jobs])  # noqa: C419 (a generator takes twice as long)


def bytes_of(jobs: Iterable[NewJob]) -> int:
    """What jobs take on their way, as far as it can be large."""
    return sum([len(job.body) + len(job.headers or b"") for job in jobs])


def steps(calls: Iterable[Sequence[NewJob]]) -> Iterator[list[Sequence[NewJob]]]:
    """Calls in their order, those together that go into one step."""
    together: list[Sequence[NewJob]] = []
    room = StepRoom()
    for jobs in calls:
        if together and room.take(jobs):
            together.append(jobs)
            continue
        if together:
            yield together
        together, room = [jobs], StepRoom()
        room.put(jobs)
    if together:
        yield together
