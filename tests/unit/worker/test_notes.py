"""What running code notes, and how it is written: bounded, and in few trips."""

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from tidemill.engine.protocol import JobsFacet
from tidemill.model.errors import BadInput, EngineUnavailable
from tidemill.model.jobs.run import Answer, LogLine, Note, Progress
from tidemill.worker.running import notes
from tidemill.worker.running.notes import PENDING_LINES, Notebook, RunNotes


class Store:
    """Takes notes, unless it is told not to."""

    def __init__(self) -> None:
        self.calls: list[list[Note]] = []
        self.called = asyncio.Event()
        self.away = False
        self.up = asyncio.Event()
        self.up.set()
        self.refuses: set[int] = set()
        self.stale: set[int] = set()
        self.dropped: list[Exception] = []

    async def write(self, given: Sequence[Note]) -> list[Answer]:
        self.calls.append(list(given))
        self.called.set()
        await self.up.wait()
        if self.away:
            raise EngineUnavailable("the line is dead")
        if self.refuses & {note.fence for note in given}:
            raise BadInput("this cannot be stored")
        return [Answer.STALE if note.fence in self.stale else Answer.APPLIED for note in given]

    def lines(self, fence: int) -> list[str]:
        """The lines of one run in the last call that was about it."""
        last = [call for call in self.calls if any(note.fence == fence for note in call)][-1]
        entries = [note.entry for note in last if note.fence == fence]
        return [entry.message for entry in entries if isinstance(entry, LogLine)]


@pytest.fixture
async def store() -> Store:
    return Store()


@pytest.fixture
async def notebook(store: Store) -> Notebook:
    return Notebook(cast(JobsFacet, store), store.dropped.append)


def a_page(notebook: Notebook, fence: int = 1, lines: int = 0) -> RunNotes:
    page = notebook.open(bytes(16), fence)
    for number in range(lines):
        page.add("info", f"line {number}")
    return page


async def test_during_an_outage_a_page_stays_within_its_bounds(store: Store, notebook: Notebook) -> None:
    page = a_page(notebook)
    store.away = True
    for turn in range(5):
        for number in range(PENDING_LINES):
            page.add("info", f"line {turn * PENDING_LINES + number}")
        page.report(b"%d" % turn)
        with pytest.raises(EngineUnavailable):
            await notebook.flush([1])
    assert max(len(call) for call in store.calls) <= PENDING_LINES
    entries = [note.entry for note in page.take()]
    assert len(entries) == PENDING_LINES + 1
    assert [entry.value for entry in entries if isinstance(entry, Progress)] == [b"4"], "the latest only"


async def test_after_an_outage_all_that_was_kept_is_written_and_the_rest_is_counted(
    store: Store, notebook: Notebook
) -> None:
    page = a_page(notebook, lines=PENDING_LINES)
    store.away = True
    with pytest.raises(EngineUnavailable):
        await notebook.flush([1])
    for number in range(PENDING_LINES, 2 * PENDING_LINES + 30):
        page.add("info", f"line {number}")
    page.report(b"1")
    with pytest.raises(EngineUnavailable):
        await notebook.flush([1])
    store.away = False
    store.calls.clear()
    await notebook.flush([1])
    entries = [note.entry for call in store.calls for note in call]
    lines = [entry for entry in entries if isinstance(entry, LogLine)]
    assert [line.number for line in lines] == list(range(1, 2 * PENDING_LINES + 2))
    assert [line.message for line in lines[:-1]] == [f"line {number}" for number in range(2 * PENDING_LINES)]
    assert "30 lines were dropped" in lines[-1].message
    store.calls.clear()
    await notebook.flush([1])
    assert store.calls == [], "there is nothing left"


async def test_the_pages_of_many_runs_share_a_write(store: Store, notebook: Notebook) -> None:
    for fence in range(1, 201):
        a_page(notebook, fence, lines=3)
    await notebook.flush(range(1, 201))
    assert len(store.calls) == 1
    for fence in range(1, 401):
        a_page(notebook, fence, lines=4)
    await notebook.flush(range(1, 401))
    assert [len(call) for call in store.calls[1:]] == [1_000, 600]


async def test_what_arrived_before_an_outage_is_not_written_again(store: Store, notebook: Notebook) -> None:
    for fence in (1, 2, 3):
        a_page(notebook, fence, lines=600)
    first_only = store.write

    async def once(given: Sequence[Note]) -> list[Answer]:
        store.away = bool(store.calls)
        return await first_only(given)

    store.write = once  # type: ignore[method-assign]
    with pytest.raises(EngineUnavailable):
        await notebook.flush([1, 2, 3])
    store.away, store.write = False, first_only  # type: ignore[method-assign]
    store.calls.clear()
    await notebook.flush([1, 2, 3])
    assert [len(call) for call in store.calls] == [800]


async def test_one_page_that_cannot_be_stored_does_not_spoil_the_others(
    store: Store, notebook: Notebook
) -> None:
    for fence in (1, 2, 3):
        a_page(notebook, fence, lines=2)
    store.refuses = {2}
    await notebook.flush([1, 2, 3])
    assert len(store.dropped) == 1
    assert [{note.fence for note in call} for call in store.calls] == [{1, 2, 3}, {1}, {2}, {3}]
    store.calls.clear()
    await notebook.flush([1, 2, 3])
    assert store.calls == []


async def test_the_page_of_a_run_that_is_over_is_closed(store: Store, notebook: Notebook) -> None:
    kept, over = a_page(notebook, 1, lines=1), a_page(notebook, 2, lines=1)
    store.stale = {2}
    await notebook.flush([1, 2])
    assert notebook.open(bytes(16), 1) is kept
    assert notebook.open(bytes(16), 2) is not over


async def test_news_that_comes_during_a_slow_write_waits_for_one_more(
    store: Store, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "FLUSH_S", 0.0)
    page = a_page(notebook)
    store.up.clear()
    before = asyncio.all_tasks()
    for number in range(50):
        page.add("info", f"line {number}")
        notebook.written(1)
        await store.called.wait()
        for _ in range(5):
            await asyncio.sleep(0)
    assert len(asyncio.all_tasks() - before) == 1, "one flush, however long it takes"
    store.called.clear()
    store.up.set()
    await store.called.wait()
    assert [len(call) for call in store.calls] == [1, 49]
    notebook.stop()


async def test_an_outage_does_not_end_the_flushes(
    store: Store, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "FLUSH_S", 0.0)
    a_page(notebook, lines=2)
    store.away = True
    notebook.written(1)
    for _ in range(3):
        store.called.clear()
        await store.called.wait()
    store.away = False
    store.called.clear()
    await store.called.wait()
    assert store.lines(1) == ["line 0", "line 1"]
    notebook.stop()


def test_a_peek_takes_nothing_and_has_the_numbers_of_the_write(notebook: Notebook) -> None:
    page = a_page(notebook, lines=3)
    page.report(b"1")
    on_its_way = list(page.take())
    page.add("info", "line 3")
    page.report(b"2")
    seen = page.peek()
    assert seen[: len(on_its_way)] == on_its_way
    assert page.peek() == seen
    page.written(len(on_its_way))  # the write that was on its way has arrived
    assert page.take() == seen[len(on_its_way) :]
    assert [note.entry.number for note in seen if isinstance(note.entry, LogLine)] == [1, 2, 3, 4]


async def test_a_page_that_is_held_is_not_written_until_it_is_settled(
    notebook: Notebook, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "FLUSH_S", 0)
    held, other = a_page(notebook, 1, lines=1), a_page(notebook, 2, lines=1)
    notebook.written(1)
    assert [note.fence for note in notebook.hold(1)] == [1]
    held.add("info", "after")
    for fence in (1, 2):
        notebook.written(fence)
    await store.called.wait()
    assert [{note.fence for note in call} for call in store.calls] == [{2}]
    assert other.peek() == []
    notebook.release(1)
    await notebook.flush([1])
    assert store.lines(1) == ["line 0", "after"]
    assert notebook.hold(3) == []
