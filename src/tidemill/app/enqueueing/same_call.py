"""The same id once more: the same call, or another one?

`enqueue` leaves a job whose id it finds as it is. For the same call that is the answer: the caller repeats
it because a reply was lost, or because two of its processes do the same. Another task or other arguments
under that id are a mistake of the caller's, and `IdTaken`.

Whether two calls are the same is for their task to say, not for the engine: arguments in order or by name, a
dict in another order, a set in whatever order it was encoded. So the engine only answers that the id is
there, and its job is read and compared here. Nothing is lost by the second trip: a job's task and arguments
stay what they are while it is known. (Unless an operator edits them: then the first call is another one.)

When the comparison is made depends on what else is stored with the call:

- A single call is compared after its step, if the engine has known its id. A new id costs nothing.
- A chunk of `enqueue_many` is compared before its step, so that nothing of a refused chunk is stored. That is
  one read for a chunk with ids of the caller's. An id that comes into being between the read and the step is
  compared afterwards; the rest of the chunk is stored then.
- In a transaction of the caller's, `refuse_others` is called by the engine's script, which undoes what it has
  stored if that raises. What is compared is what the transaction sees, with its own jobs.

What is no longer known cannot be compared, and counts as the same: the arguments of a job whose queue keeps
no bodies, and of one that was deleted as it completed (for an hour its task is still known)."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TypeAlias

import msgspec

from tidemill.app.access.session import EngineSession
from tidemill.engine.protocol import CheckKnown
from tidemill.model.errors import BadPayload, IdTaken
from tidemill.model.ids import JobId, show_id
from tidemill.model.jobs.job import JobRecord, KnownCall, NewJob
from tidemill.task import codec
from tidemill.task.definition import Definition

ChosenCall: TypeAlias = tuple[NewJob, Definition | None]
"""A call with an id of the caller's, and its task if its code is here."""

AnyCall: TypeAlias = NewJob | KnownCall | JobRecord


async def refuse_taken(session: EngineSession, calls: Sequence[ChosenCall]) -> set[JobId]:
    """`IdTaken` if one of these ids is that of another call; the ids that the engine does not know."""
    known = await session.engine.jobs.watch([new.id for new, _ in calls], waiter="", ttl=0)
    refuse_others(calls, known)
    return {new.id for (new, _), record in zip(calls, known, strict=True) if record is None}


def check_of(calls: Sequence[ChosenCall]) -> CheckKnown | None:
    """What a transaction of the caller's has to check, if any of its calls has an id of the caller's."""
    return partial(refuse_others, calls) if calls else None


def refuse_others(calls: Iterable[ChosenCall], known: Iterable[KnownCall | JobRecord | None]) -> None:
    """`IdTaken` if one of these calls is another one than that which has its id."""
    by_id = {record.id: record for record in known if record is not None}
    for new, definition in calls:
        record = by_id.get(new.id)
        if record is not None and (what := _difference(new, record, definition)):
            raise IdTaken(
                f"the job {show_id(new.id)} is there already, {what}: it was left as it is, and this call "
                "was not stored; give each call an id of its own"
            )


def refuse_twins(calls: Iterable[ChosenCall]) -> None:
    """`IdTaken` if two of these calls, of which none is stored yet, have one id and are not the same."""
    first: dict[JobId, NewJob] = {}
    for new, definition in calls:
        twin = first.setdefault(new.id, new)
        if twin is not new and (what := _difference(new, twin, definition)):
            raise IdTaken(
                f"two calls have the id {show_id(new.id)}, and the first is one {what}: neither was stored; "
                "give each call an id of its own"
            )


def _difference(new: NewJob, known: AnyCall, definition: Definition | None) -> str:
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
