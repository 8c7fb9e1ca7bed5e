"""`enqueue_many`: many calls in their order, in atomic chunks.

The next chunk is made while one is stored, and handed over when that is confirmed: after a chunk that was
refused, or of which nobody knows, nothing later of the same call is stored.

A chunk with ids of the caller's is compared with what the engine has before it is handed over (`same_call`).
"""

import asyncio
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, wait
from functools import partial
from itertools import islice
from typing import Generic, TypeVar

from tidemill.app.access.link import Link
from tidemill.app.enqueueing.same_call import ChosenCall, check_of, refuse_taken, refuse_twins
from tidemill.app.job import Job
from tidemill.app.task import Call
from tidemill.engine import connections
from tidemill.engine.merging import StepRoom
from tidemill.model.errors import BadInput, EngineUnavailable
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Stored

R = TypeVar("R")

TAKES = "enqueue_many takes calls: enqueue_many(task.call(x) for x in items)"
BREATH = 100
"""After so many calls a loop's other tasks have their turn: making a call takes some microseconds, and the
iterable that it comes from takes what it takes."""


def enqueue_many(link: Link, calls: Iterable[Call[R]], transaction: object) -> list[Job[R]]:
    """From a thread without a loop."""
    jobs: list[Job[R]] = []
    handed_over = 0
    chunks = _Chunks(calls)
    if transaction is not None:
        transactions = link.transactions("enqueue_many")
        while chunk := chunks.next():
            refuse_twins(chosen := _chosen(chunk))
            script = transactions.enqueue([call.job for call in chunk], check=check_of(chosen))
            jobs += _handles(link, chunk, connections.play(transaction, script, twin="app.aenqueue_many"))
        return jobs
    answer: Future[list[Stored]] | None = None
    sent: list[Call[R]] = []
    new_ids: set[JobId] = set()
    try:
        while chunk := chunks.next():
            if answer is not None:
                jobs += _confirm(link, sent, new_ids, answer.result())
            new_ids = _refuse(link, chunk)
            answer = link.enqueue([call.job for call in chunk])
            sent = chunk
            handed_over += len(chunk)
        if answer is not None:
            jobs += _confirm(link, sent, new_ids, answer.result())
    except BaseException as error:  # what was handed over is not taken back
        if answer is not None:
            wait([answer])
        _add_notes(error, handed_over, len(sent), answer)
        raise
    return jobs


async def aenqueue_many(link: Link, calls: Iterable[Call[R]], transaction: object) -> list[Job[R]]:
    """From a running loop."""
    jobs: list[Job[R]] = []
    handed_over = 0
    chunks = _Chunks(calls)
    if transaction is not None:
        transactions = await link.atransactions()
        while chunk := await chunks.anext():
            refuse_twins(chosen := _chosen(chunk))
            script = transactions.enqueue([call.job for call in chunk], check=check_of(chosen))
            jobs += _handles(link, chunk, await connections.aplay(transaction, script))
        return jobs
    answer: asyncio.Future[list[Stored]] | None = None
    sent: list[Call[R]] = []
    new_ids: set[JobId] = set()
    try:
        while chunk := await chunks.anext():
            if answer is not None:
                jobs += await _aconfirm(link, sent, new_ids, await answer)
            new_ids = await _arefuse(link, chunk)
            # Asked anew for each chunk: an `async with app:` may have begun or ended meanwhile
            answer = link.producer().hand_over([call.job for call in chunk])
            sent = chunk
            handed_over += len(chunk)
        if answer is not None:
            jobs += await _aconfirm(link, sent, new_ids, await answer)
    except BaseException as error:  # what was handed over is not taken back
        if answer is not None:
            if isinstance(error, asyncio.CancelledError):
                answer.cancel()  # only the answer: nobody waits for it any more
            await asyncio.wait({answer})
        _add_notes(error, handed_over, len(sent), answer)
        raise
    return jobs


def _refuse(link: Link, chunk: list[Call[R]]) -> set[JobId]:
    """Before a chunk is stored: `IdTaken` if one of the caller's ids is that of another call. Answers which
    of them are new. During an outage all of them may be: the step that follows is patient with the engine,
    and the ids that it passes over are compared afterwards."""
    if not (chosen := _chosen(chunk)):
        return set()
    refuse_twins(chosen)
    try:
        return link.wait("enqueue_many", partial(refuse_taken, calls=chosen))
    except EngineUnavailable:
        return {new.id for new, _ in chosen}


async def _arefuse(link: Link, chunk: list[Call[R]]) -> set[JobId]:
    if not (chosen := _chosen(chunk)):
        return set()
    refuse_twins(chosen)
    try:
        return await link.run(partial(refuse_taken, calls=chosen))
    except EngineUnavailable:
        return {new.id for new, _ in chosen}


def _confirm(link: Link, sent: list[Call[R]], new_ids: set[JobId], stored: list[Stored]) -> list[Job[R]]:
    """A chunk is stored: its handles. `IdTaken` if another call has come by one of its new ids meanwhile."""
    if raced := _raced(sent, new_ids, stored):
        link.wait("enqueue_many", partial(refuse_taken, calls=raced))
    return _handles(link, sent, stored)


async def _aconfirm(
    link: Link, sent: list[Call[R]], new_ids: set[JobId], stored: list[Stored]
) -> list[Job[R]]:
    if raced := _raced(sent, new_ids, stored):
        await link.run(partial(refuse_taken, calls=raced))
    return _handles(link, sent, stored)


def _chosen(calls: list[Call[R]]) -> list[ChosenCall]:
    """Those whose ids the caller has chosen."""
    return [(call.job, call.definition) for call in calls if call.id_chosen]


def _raced(calls: list[Call[R]], new_ids: set[JobId], stored: list[Stored]) -> list[ChosenCall]:
    """Those that were not created, of ids that were new before."""
    if not new_ids:
        return []
    return [
        (call.job, call.definition)
        for call, answer in zip(calls, stored, strict=True)
        if not answer.created and answer.id == call.job.id and answer.id in new_ids
    ]


def _handles(link: Link, calls: Iterable[Call[R]], stored: Iterable[Stored]) -> list[Job[R]]:
    return [
        Job(link, answer.id, call.job.task, call.definition, created=answer.created)
        for call, answer in zip(calls, stored, strict=True)
    ]


def _add_notes(
    error: BaseException,
    handed_over: int,
    last: int,
    answer: "Future[list[Stored]] | asyncio.Future[list[Stored]] | None",
) -> None:
    """What is known to be stored: all that was handed over, of the last chunk only what its answer says."""
    unsure: str | None = None
    if answer is not None and answer.cancelled():
        unsure = "may be stored or not: nobody waited for the answer"
    elif answer is not None and (failure := answer.exception()) is not None:
        unsure = f"failed: {failure!r}"
    stored = handed_over if unsure is None else handed_over - last
    error.add_note(f"enqueue_many: the first {stored:,} calls were stored")
    if unsure is not None:
        error.add_note(f"enqueue_many: the {last:,} after them {unsure}")


class _Chunks(Generic[R]):
    """Calls in chunks that one step has room for (`engine.merging`)."""

    def __init__(self, calls: Iterable[Call[R]]) -> None:
        self._left = _iter(calls)
        self._made: list[Call[R]] = []
        """Made for a chunk in which there was no room for them."""

    def next(self) -> list[Call[R]]:
        """The next chunk; empty: the end."""
        chunk: list[Call[R]] = []
        room = StepRoom()
        while self._grow(chunk, room):
            pass
        return chunk

    async def anext(self) -> list[Call[R]]:
        """The same; others have the loop in between."""
        chunk: list[Call[R]] = []
        room = StepRoom()
        while True:
            if not self._grow(chunk, room):
                return chunk
            await asyncio.sleep(0)

    def _grow(self, chunk: list[Call[R]], room: StepRoom) -> bool:
        """Some more calls, in one go if they fit; whether more may come."""
        if room.is_full:
            return False
        some, self._made = self._made or _checked(islice(self._left, BREATH)), []
        if room.take([call.job for call in some]):
            chunk += some
            return bool(some)
        for at, call in enumerate(some):
            if not room.take([call.job]):
                self._made = some[at:]
                return False
            chunk.append(call)
        return True


def _iter(calls: Iterable[Call[R]]) -> Iterator[Call[R]]:
    if not isinstance(calls, Iterable):
        raise BadInput(TAKES)
    return iter(calls)


def _checked(calls: Iterable[Call[R]]) -> list[Call[R]]:
    made = list(calls)
    if not all(isinstance(call, Call) for call in made):
        raise BadInput(TAKES)
    return made
