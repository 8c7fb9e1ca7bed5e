"""How events travel: packed, numbered, in texts of a bounded length.

A *piece* is what one step did to many jobs: all of them came into one state at one moment, and their ids
stand one behind the other. So an event of a busy worker takes 22 characters, and no record of its own.

Each emitter numbers its events. A batch carries the number of its first event, from which a receiver knows
how many are missing before it. A batch without pieces only says how far its emitter is.
"""

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tidemill.model.event import Event, EventFilter, Gap
from tidemill.model.ids import ID_SIZE, JobId
from tidemill.model.jobs.job import STATES, JobState
from tidemill.model.time import Instant

ERROR_LIMIT = 300
"""The most characters of an error in an event."""
EMITTERS_KEPT = 10_000
"""The most emitters whose numbers a receiver remembers."""
_PIECE_BYTES, _BATCH_BYTES = 32, 40
"""What a piece and a batch take beside their texts and ids, rounded up."""


_GAP, _NOBODY = -1, bytes(ID_SIZE)


class Piece(msgspec.Struct, array_like=True, gc=False):
    """What one step did to some jobs."""

    state: int
    """Its place in `STATES`; `_GAP`: events are missing here."""
    at: Instant
    queue: str
    task: str
    ids: bytes
    member: str = ""
    error: str = ""


class Batch(msgspec.Struct, array_like=True):
    """Some pieces of one emitter."""

    emitter: bytes
    first: int
    """The number of its first event, from 0."""
    count: int
    pieces: list[Piece]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Batch).decode


def piece_of(
    state: JobState,
    at: Instant,
    queue: str,
    task: str,
    ids: Iterable[JobId],
    member: str = "",
    error: str = "",
) -> Piece:
    """A piece; the error becomes one line of bounded length, without what cannot be encoded."""
    if error:
        error = " ".join(error.split())[:ERROR_LIMIT].encode(errors="backslashreplace").decode()
    return Piece(STATES.index(state), at, queue, task, b"".join(ids), member, error)


def gap_piece(missed: int | None, at: Instant) -> Piece:
    """Here so many events are missing, or an unknown number. It counts as one: lost on the way, it is still
    missed."""
    return Piece(_GAP, at, "", "", _NOBODY, "", "" if missed is None else str(missed))


def pack(emitter: bytes, first: int, pieces: Sequence[Piece], room: int) -> Iterator[tuple[str, int]]:
    """Texts of at most `room` characters, each with the number of events in it."""
    bytes_left = room_left = room * 3 // 4 - _BATCH_BYTES
    waiting: list[Piece] = []
    for piece in _cut(pieces, bytes_left):
        size = _size(piece)
        if waiting and size > room_left:
            text, count = _text(emitter, first, waiting)
            yield text, count
            first, waiting, room_left = first + count, [], bytes_left
        waiting.append(piece)
        room_left -= size
    if waiting:
        yield _text(emitter, first, waiting)


def mark(emitter: bytes, first: int) -> str:
    """A batch that only says how far its emitter is."""
    return _text(emitter, first, [])[0]


def unpack(text: str) -> Batch | None:
    """The batch; None: this is none, or a part of one."""
    try:
        return _decode(a2b_base64(text.encode(), strict_mode=True))
    except (ValueError, msgspec.DecodeError):
        return None


def events_of(batch: Batch, wanted: EventFilter) -> Iterator[Event | Gap]:
    """The events that a reader wants, and where some are missing."""
    for piece in batch.pieces:
        if piece.state == _GAP:
            yield Gap("lost", int(piece.error) if piece.error else None)
            continue
        state, job = STATES[piece.state], wanted.job
        if not wanted.may_want(state, piece.queue, piece.task):
            continue
        ids, queue, task, at, member, error = (
            piece.ids,
            piece.queue,
            piece.task,
            piece.at,
            piece.member,
            piece.error,
        )
        for start in range(0, len(ids), ID_SIZE):
            job_id = ids[start : start + ID_SIZE]
            if job is None or job_id == job:
                yield Event(job_id, state, queue, task, at, member, error)


class Numbers:
    """Up to which number each emitter's events have arrived."""

    def __init__(self) -> None:
        self._next: dict[bytes, int] = {}

    def missed(self, batch: Batch) -> int | None:
        """How many events of its emitter are missing before this batch; None: it has arrived before. Before
        the first batch of an emitter nothing is missing."""
        expected = self._next.pop(batch.emitter, batch.first)
        end = batch.first + batch.count
        self._next[batch.emitter] = max(expected, end)  # the one received last stands last
        if len(self._next) > EMITTERS_KEPT:
            del self._next[next(iter(self._next))]
        return None if batch.first < expected else batch.first - expected


def _text(emitter: bytes, first: int, pieces: list[Piece]) -> tuple[str, int]:
    count = sum(len(piece.ids) for piece in pieces) // ID_SIZE
    batch = _encode(Batch(emitter, first, count, pieces))
    return b2a_base64(batch, newline=False).decode(), count


def _size(piece: Piece) -> int:
    texts = piece.queue, piece.task, piece.member, piece.error
    return _PIECE_BYTES + len(piece.ids) + sum(len(text.encode()) for text in texts)


def _cut(pieces: Iterable[Piece], most: int) -> Iterator[Piece]:
    """The pieces, those that are too large in several."""
    for piece in pieces:
        room = most - (_size(piece) - len(piece.ids))
        length = max(1, room // ID_SIZE) * ID_SIZE
        if len(piece.ids) <= length:
            yield piece
        else:
            for start in range(0, len(piece.ids), length):
                yield msgspec.structs.replace(piece, ids=piece.ids[start : start + length])
