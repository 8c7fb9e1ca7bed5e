"""Between those who hear events and those who read them: nothing is lost in silence, nobody waits in vain."""

import asyncio
import threading

import pytest

from tidemill.app.reading.backlog import Backlog
from tidemill.model.event import Event, Gap
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState


def some_events(count: int) -> list[Event]:
    return [Event(new_id(), JobState.READY, "q", "t", 0) for _ in range(count)]


@pytest.mark.row("C2")
def test_a_slow_reader_is_told_how_many_he_has_missed() -> None:
    backlog, (first, second, third, late) = Backlog(limit=2), some_events(4)
    backlog.put([first, second, third])
    backlog.put([*some_events(5)])
    assert backlog.take() == [first, second, Gap("slow", 6)]
    backlog.put([late])
    assert backlog.take() == [late]


def test_a_gap_stands_where_the_events_are_missing() -> None:
    backlog, events = Backlog(limit=3), some_events(2)
    backlog.put([events[0], Gap("lost", 7), events[1]])
    assert backlog.take() == [events[0], Gap("lost", 7), events[1]]


@pytest.mark.row("C2")
def test_a_gap_is_never_lost() -> None:
    """Where there is no room, the gaps of one kind become one."""
    backlog, [first, *others] = Backlog(limit=1), some_events(4)
    backlog.put([first, others[0], Gap("lost", 2), Gap("unheard"), others[1], Gap("lost", 3)])
    assert backlog.take() == [first, Gap("slow", 2), Gap("lost", 5), Gap("unheard")]
    backlog.put([first, Gap("lost", 2), Gap("lost"), Gap("lost", 1)])
    assert backlog.take() == [first, Gap("lost")], "of some it is not known how many"
    backlog.put([others[2]])
    assert backlog.take() == [others[2]]


def test_a_thread_waits_for_what_comes_and_for_the_end() -> None:
    backlog, [event] = Backlog(), some_events(1)
    found: list[list[Event | Gap]] = []
    reader = threading.Thread(target=lambda: found.extend([backlog.take(), backlog.take()]))
    reader.start()
    backlog.put([event])
    backlog.end()
    reader.join(10)
    assert found == [[event], []]


async def test_a_loop_waits_for_what_comes_and_for_the_end() -> None:
    backlog, [event] = Backlog(), some_events(1)
    reader = asyncio.create_task(backlog.atake())
    await asyncio.sleep(0)
    await asyncio.to_thread(backlog.put, [event])
    assert await reader == [event]
    reader = asyncio.create_task(backlog.atake())
    await asyncio.sleep(0)
    backlog.end()
    assert await reader == []
    assert await backlog.atake() == []


@pytest.mark.row("C2")
async def test_what_nobody_wants_is_not_the_end() -> None:
    """All of a batch may be of other jobs: the reader waits on."""
    backlog, [event] = Backlog(), some_events(1)
    reader = asyncio.create_task(backlog.atake())
    await asyncio.sleep(0)
    backlog.put([])
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # as long as a wake-up takes
    assert not reader.done()
    backlog.put([event])
    assert await reader == [event]


def test_a_fault_of_the_listener_is_the_readers_after_what_was_heard() -> None:
    backlog, [event] = Backlog(), some_events(1)
    backlog.put([event])
    backlog.end(OSError("broken"))
    assert backlog.take() == [event]
    with pytest.raises(OSError, match="broken"):
        backlog.take()


def test_a_closed_backlog_keeps_nothing_and_says_nothing_any_more() -> None:
    backlog = Backlog(limit=1)
    backlog.put(some_events(2))
    backlog.close()
    backlog.put(some_events(1))
    backlog.end(OSError("broken"))
    assert backlog.take() == []
