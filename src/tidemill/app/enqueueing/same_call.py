"""The same id once more: the same call, or another one?

`enqueue` leaves a job whose id it finds as it is. For the same call that is the answer: the caller repeats
it because a reply was lost, or because two of its processes do the same. Another task or other arguments
under that id are a mistake of the caller's, and `IdTaken`.

Whether two calls are the same is for their task to say, not for the engine: arguments in order or by name, a
dict in another order, a set in whatever order it was encoded. So the engine only answers that the id is
there, and its job is read and compared here. Nothing is lost by the second trip: a job's task and arguments
stay what they are while it is known. (Unless an operator edits them: then the first call is another one.) It
costs nothing where ids are new, and one read where one is not.

What is no longer known cannot be compared, and counts as the same: the arguments of a job whose queue keeps
no bodies, and of one that was deleted as it completed (for an hour its task is still known)."""

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from tidemill.app.access.session import EngineSession
from tidemill.model.errors import BadPayload, IdTaken
from tidemill.model.ids import show_id
from tidemill.model.jobs.job import JobRecord, NewJob
from tidemill.task import codec
from tidemill.task.definition import Definition

Known: TypeAlias = tuple[NewJob, Definition | None]
"""A call whose id the engine has known, and its task if its code is here."""


async def refuse_others(session: EngineSession, calls: Iterable[Known]) -> None:
    """`IdTaken` if one of these ids, which the engine has known, is that of another call."""
    sent = list(calls)
    found = await session.engine.jobs.watch([new.id for new, _ in sent], waiter="", ttl=0)
    _compare(sent, found)


async def refuse_others_unlocked(session: EngineSession, calls: Iterable[Known]) -> None:
    """The same after an enqueue in a transaction of the caller's, which may hold locks that a `watch` needs:
    only read. What that transaction has stored itself is not to be seen yet."""
    sent = list(calls)
    _compare(sent, await session.engine.inspect.get([new.id for new, _ in sent]))


def _compare(calls: list[Known], found: list[JobRecord | None]) -> None:
    for (new, definition), known in zip(calls, found, strict=True):
        if known is not None and (what := _difference(new, known, definition)):
            raise IdTaken(
                f"the job {show_id(new.id)} is there already, {what}: it was left as it is, and this call "
                "was not stored; give each call an id of its own"
            )


def _difference(new: NewJob, known: JobRecord, definition: Definition | None) -> str:
    if known.task != new.task:
        return f"of the task {known.task}, not {new.task}"
    if known.body is None or (known.codec, known.body) == (new.codec, new.body):
        return ""
    same = _meaning(known.codec, known.body, definition) == _meaning(new.codec, new.body, definition)
    return "" if same else f"with other arguments for {known.task}"


def _meaning(codec_number: int, body: bytes, definition: Definition | None) -> bytes:
    """Two bodies that mean the same call give the same bytes."""
    if definition is not None:
        try:
            return codec.canonical(definition.named_arguments(codec_number, body))
        except BadPayload:  # of an older version of the code, say
            pass
    try:
        return codec.canonical(msgspec.json.decode(body))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return body
