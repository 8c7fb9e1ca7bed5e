"""Events, packed: whole, within the room, numbered."""

from typing import Any

import pytest

from tidemill.model.event import Event, EventFilter, Gap
from tidemill.model.event_batch import (
    ERROR_LIMIT,
    Batch,
    Numbers,
    Piece,
    events_of,
    gap_piece,
    mark,
    pack,
    piece_of,
    unpack,
)
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState

EMITTER = b"emitter-1"
EVERYTHING = EventFilter()


def a_piece(count: int = 1, state: JobState = JobState.READY, **given: Any) -> Piece:
    texts = {"queue": "q", "task": "t", **given}
    return piece_of(state, 1_000_000, ids=[new_id() for _ in range(count)], **texts)


def unpacked(text: str) -> Batch:
    batch = unpack(text)
    assert batch is not None
    return batch


@pytest.mark.row("C2")
@pytest.mark.parametrize("room", [4_000, 7_600, 60_000])
@pytest.mark.parametrize("counts", [[1], [1_000], [3, 0, 700, 1, 1], [1] * 600], ids=str)
def test_everything_arrives_in_order_and_no_text_is_too_long(room: int, counts: list[int]) -> None:
    long_names: dict[str, Any] = {
        "task": "ü" * 200,
        "queue": "q" * 100,
        "member": "h:1",
        "error": "\U0001f525" * 400,
    }
    pieces = [
        a_piece(count, **(long_names if number % 2 else {})) for number, count in enumerate(counts) if count
    ]
    texts = list(pack(EMITTER, 5, pieces, room))
    batches = [unpacked(text) for text, _ in texts]
    assert all(len(text) <= room and text.isascii() for text, _ in texts)
    assert [batch.count for batch in batches] == [count for _, count in texts]
    numbers = Numbers()
    assert [numbers.missed(batch) for batch in batches] == [0] * len(batches)
    assert batches[0].first == 5
    assert b"".join(piece.ids for batch in batches for piece in batch.pieces) == b"".join(
        piece.ids for piece in pieces
    )
    found = [event for batch in batches for event in events_of(batch, EVERYTHING)]
    assert len(found) == sum(counts)
    assert all(isinstance(event, Event) and len(event.error) <= ERROR_LIMIT for event in found)


def test_an_event_says_what_happened() -> None:
    job = new_id()
    piece = piece_of(JobState.DEAD, 1_500_000, "q", "t", [job], error="ValueError: no\n\tsuch \udcff")
    [(text, _)] = pack(EMITTER, 0, [piece], 4_000)
    [event] = events_of(unpacked(text), EVERYTHING)
    assert event == Event(job, JobState.DEAD, "q", "t", 1_500_000, "", "ValueError: no such \\udcff")
    assert repr(event).startswith(f"Event(job={event.job!r}, state='dead', queue='q', task='t', at='1970-01-")
    assert event.at.isoformat() == "1970-01-01T00:00:01.500000+00:00"
    assert event.job.replace("-", "") == job.hex()


@pytest.mark.parametrize(
    "text", ["", "x", "!!", "AAAA", "ü", mark(EMITTER, 3)[:-3], mark(EMITTER, 3) + "AAAA"]
)
def test_what_is_no_batch_is_none(text: str) -> None:
    assert unpack(text) is None


def test_only_what_is_wanted_is_found() -> None:
    mine = new_id()
    pieces = [
        a_piece(2),
        a_piece(2, JobState.DEAD),
        a_piece(2, queue="other"),
        a_piece(2, task="other"),
        piece_of(JobState.READY, 0, "q", "t", [new_id(), mine]),
    ]
    batch = Batch(EMITTER, 0, 10, pieces)

    def found(wanted: EventFilter) -> int:
        return len(list(events_of(batch, wanted)))

    assert found(EVERYTHING) == 10
    assert found(EventFilter(states=frozenset({JobState.DEAD}))) == 2
    assert found(EventFilter(states=frozenset({JobState.DEAD, JobState.READY}))) == 10
    assert found(EventFilter(queue="other")) == 2
    assert found(EventFilter(task="t", queue="q")) == 6
    assert found(EventFilter(job=mine)) == 1
    assert found(EventFilter(job=mine, queue="other")) == 0


def test_missing_doubled_and_late_batches_are_told_apart() -> None:
    numbers = Numbers()

    def missed(first: int, count: int, emitter: bytes = EMITTER) -> int | None:
        return numbers.missed(Batch(emitter, first, count, []))

    assert missed(70, 5) == 0, "what an emitter said before we listened is not missing"
    assert missed(75, 1) == 0
    assert missed(75, 1) is None, "doubled"
    assert missed(80, 2) == 4
    assert missed(76, 4) is None, "late: they were counted as missing"
    assert missed(82, 0) == 0, "a mark"
    assert missed(90, 0) == 8, "a mark after what was lost"
    assert missed(0, 3, b"emitter-2") == 0
    assert missed(90, 1) == 0


@pytest.mark.row("C2")
def test_a_gap_travels_in_its_place_whatever_is_wanted() -> None:
    [before], [after] = ([new_id()] for _ in range(2))
    pieces = [
        piece_of(JobState.READY, 1, "q", "t", [before]),
        gap_piece(None, 1),
        gap_piece(7, 1),
        piece_of(JobState.READY, 1, "q", "t", [after]),
    ]
    [(text, count)] = pack(EMITTER, 0, pieces, 4_000)
    found = list(events_of(unpacked(text), EventFilter(job=after)))
    assert found[:2] == [Gap("lost", None), Gap("lost", 7)]
    assert [one.job_id for one in found[2:] if isinstance(one, Event)] == [after]
    assert count == 4, "a gap that is lost on the way is missed too"
