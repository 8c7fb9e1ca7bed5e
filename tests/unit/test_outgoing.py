"""Changes that wait to be emitted."""

import pytest

from tidemill.engine.events.changes import Change, Changes, Missed
from tidemill.engine.events.outgoing import Outgoing
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState

UNKNOWN: Changes = [Missed(None)]


@pytest.mark.row("C2")
def test_several_unknown_changes_in_a_row_are_one_gap() -> None:
    """As long as they wait: while the engine is out of reach, every call is without an answer."""
    outgoing = Outgoing(10)
    known: Changes = [Change(JobState.READY, ("default", "t"), [new_id()])]
    for changes in (UNKNOWN, UNKNOWN, known, UNKNOWN, UNKNOWN, UNKNOWN):
        assert outgoing.add(1.0, changes) == 0

    taken, dropped = outgoing.take()
    assert [call.changes for call in taken] == [UNKNOWN, known, UNKNOWN]
    assert dropped == 0


@pytest.mark.row("C2")
def test_what_has_no_room_is_counted() -> None:
    outgoing = Outgoing(2)
    many: Changes = [Change(JobState.READY, ("default", "t"), [new_id(), new_id()])]
    assert outgoing.add(1.0, many) == 0
    assert outgoing.add(2.0, many) == 2
    assert outgoing.add(3.0, UNKNOWN) == 1

    taken, dropped = outgoing.take()
    assert [call.changes for call in taken] == [many]
    assert dropped == 3
    assert not outgoing
    assert outgoing.add(4.0, many) == 0, "there is room again"
