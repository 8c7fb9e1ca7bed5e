"""What calls and answers do not say about a change: read from the engine before the change is published."""

from collections.abc import Sequence
from contextlib import suppress

from tidemill.engine.events.changes import Change, Changes, Missed, Unsure
from tidemill.engine.protocol import BATCH_LIMIT, Engine
from tidemill.model.errors import EngineError
from tidemill.model.event_batch import Piece, gap_piece, piece_of
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobRecord
from tidemill.model.time import Instant


class EventDetail:
    """Makes pieces of changes. If the engine does not answer, the likely state is emitted."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._members: dict[bytes, str] = {}

    async def pieces(self, changes: Changes, at: Instant) -> list[Piece]:
        """The changes of one moment. A deleted job whose queue and task are not known is left out."""
        records = await self._records([change.id for change in changes if isinstance(change, Unsure)])
        pieces: list[Piece] = []
        for change in changes:
            if isinstance(change, Change):
                member = await self._member(change.member) if change.member else ""
                pieces.append(piece_of(change.state, at, *change.what, change.ids, member, change.error))
            elif isinstance(change, Missed):
                pieces.append(gap_piece(change.number, at))
            elif (piece := _judged(change, records.get(change.id), at)) is not None:
                pieces.append(piece)
        return pieces

    async def _records(self, ids: Sequence[JobId]) -> dict[JobId, JobRecord]:
        found: dict[JobId, JobRecord] = {}
        for start in range(0, len(ids), BATCH_LIMIT):
            with suppress(EngineError):
                jobs = await self._engine.inspect.get(ids[start : start + BATCH_LIMIT])
                found.update((job.id, job) for job in jobs if job is not None)
        return found

    async def _member(self, member: bytes) -> str:
        """Its name, which only its heartbeats say."""
        if member not in self._members:
            with suppress(EngineError):
                found = await self._engine.members.list()
                self._members = {member.info.id: member.info.name for member in found}
        return self._members.setdefault(member, "")


def _judged(change: Unsure, record: JobRecord | None, at: Instant) -> Piece | None:
    what = change.what if record is None else (record.queue, record.task)
    if what is None:
        return None
    known = record is not None and record.state in change.unless
    state = record.state if record is not None and known else change.otherwise
    return piece_of(state, at, *what, [change.id], "", change.error)
