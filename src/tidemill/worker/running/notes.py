"""Progress and log lines of running jobs, on their way to the engine.

Running code only buffers, from any thread, and never waits. Each run that notes something has a *page*, whose
parts are changed by single atomic operations. The notebook writes all pages with news about `FLUSH_S` after
the first of them. Before the exchange settles runs, it has their pages written, because a note under a
settled fence would be refused. The notes of many pages share a write. There is one write at a time, so that a
settle cannot overtake the lines before it. What could not be written stays on its page and is written again
under the same numbers, which the engine knows.

Bounds, however long the engine is away: a page has at most `PENDING_LINES` lines on their way and as many
that wait behind them. Lines beyond that are counted, and the count becomes a line. Of progress there is the
latest only. And there is one flush at a time: news that comes meanwhile waits for the next.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable
from itertools import groupby

from tidemill.engine.protocol import BATCH_LIMIT, JobsFacet, TransactionsFacet
from tidemill.model.errors import BadInput, EngineError, EngineUnavailable
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import MESSAGE_LIMIT, Fence
from tidemill.model.jobs.run import Answer, LogLine, Note, Progress

FLUSH_S = 0.5
PENDING_LINES = 1_000


class RunNotes:
    """The notes of one run that have not been written yet."""

    def __init__(self, job_id: JobId, fence: Fence) -> None:
        self.id = job_id
        self.fence = fence
        self._progress: deque[bytes] = deque(maxlen=1)  # the latest only; append and pop are atomic
        self._lines: deque[tuple[str, str]] = deque()
        self._dropped = 0
        self._number = 0
        self._unwritten: list[Note] = []

    def report(self, value: bytes) -> None:
        """The latest progress."""
        self._progress.append(value)

    def add(self, level: str, message: str) -> None:
        """One more line."""
        if len(self._lines) >= PENDING_LINES:
            self._dropped += 1
        else:
            self._lines.append((level, clip_line(message)))

    def take(self) -> list[Note]:
        """What is to be written, including what could not be written before. On the loop only."""
        for _ in range(min(len(self._lines), PENDING_LINES - len(self._unwritten))):
            self._line(*self._lines.popleft())
        if self._dropped and not self._lines:
            dropped, self._dropped = self._dropped, 0
            self._line("warning", f"{dropped} lines were dropped: more than {PENDING_LINES:,} were waiting")
        if self._progress:
            self._forget_progress()
            self._unwritten.append(self._note(Progress(value=self._progress.popleft())))
        return self._unwritten

    def peek(self) -> list[Note]:
        """All notes that are not known to be written, as `take` would give them. From any thread. Nothing is
        taken, so that a line has the same number whichever way it is written."""
        lines = [
            self._note(LogLine(number=number, level=level, message=message))
            for number, (level, message) in enumerate(tuple(self._lines), self._number + 1)
        ]
        return [
            *self._unwritten,
            *lines,
            *(self._note(Progress(value=value)) for value in tuple(self._progress)),
        ]

    def written(self, count: int) -> None:
        """The first so many of what was taken have arrived."""
        del self._unwritten[:count]

    @property
    def crowded(self) -> bool:
        """Some lines have not been taken: there was no room beside those that could not be written before."""
        return bool(self._lines)

    def _forget_progress(self) -> None:
        """What could not be written is replaced by what is newer."""
        if self._unwritten:
            self._unwritten = [note for note in self._unwritten if not isinstance(note.entry, Progress)]

    def _line(self, level: str, message: str) -> None:
        self._number += 1
        self._unwritten.append(self._note(LogLine(number=self._number, level=level, message=message)))

    def _note(self, entry: LogLine | Progress) -> Note:
        return Note(id=self.id, fence=self.fence, entry=entry)


class Notebook:
    """The pages of one worker."""

    def __init__(
        self,
        jobs: JobsFacet,
        lost: Callable[[Exception], None],
        transactions: TransactionsFacet | None = None,
    ) -> None:
        self.transactions = transactions
        """For runs that complete themselves, with what they noted last."""
        self._loop = asyncio.get_running_loop()
        self._jobs = jobs
        self._lost = lost
        self._held: set[Fence] = set()
        self._pages: dict[Fence, RunNotes] = {}
        self._news: set[Fence] = set()
        self._scheduled = False
        self._writing = asyncio.Lock()
        self._flushing: asyncio.Task[None] | None = None

    def open(self, job_id: JobId, fence: Fence) -> RunNotes:
        """The run's page. From any thread."""
        return self._pages.setdefault(fence, RunNotes(job_id, fence))

    def written(self, fence: Fence) -> None:
        """There is news on a page. From any thread."""
        if fence in self._held:
            return
        self._news.add(fence)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon_threadsafe(self._loop.call_later, FLUSH_S, self._begin_flush)

    def hold(self, fence: Fence) -> list[Note]:
        """What is on a page and not known to be written. Until `release` nothing of it is written from here:
        it would wait for a transaction that holds the job, and the notes of all other runs behind it. From
        any thread, without waiting for the loop: that may itself be waiting for this very transaction."""
        self._held.add(fence)
        self._news.discard(fence)
        page = self._pages.get(fence)
        return [] if page is None else page.peek()

    def release(self, fence: Fence) -> None:
        """No transaction holds the job any more. On the loop."""
        self._held.discard(fence)

    async def flush(self, fences: Iterable[Fence]) -> None:
        """Write these pages. `EngineUnavailable`: nothing is lost, call again."""
        async with self._writing:
            crowded = await self._write(fences)
            await self._write(crowded)

    def close(self, fence: Fence) -> None:
        """The run has ended; what it notes from now on goes nowhere."""
        self._pages.pop(fence, None)
        self._news.discard(fence)
        self._held.discard(fence)

    def stop(self) -> None:
        """Write no more."""
        self._scheduled = True
        if self._flushing is not None:
            self._flushing.cancel()

    async def _write(self, fences: Iterable[Fence]) -> list[Fence]:
        """Write what these pages can give at once; those that have more."""
        notes: list[Note] = []
        crowded = []
        for fence in fences:
            self._news.discard(fence)  # first: what is noted from now on is news again
            page = self._pages.get(fence)
            if page is not None:
                notes += page.take()
                if page.crowded:
                    crowded.append(fence)
        for start in range(0, len(notes), BATCH_LIMIT):
            await self._write_batch(notes[start : start + BATCH_LIMIT])
        return crowded

    async def _write_batch(self, notes: list[Note]) -> None:
        try:
            answers = await self._jobs.write(notes)
        except BadInput as error:
            await self._write_apart(notes, error)
            return
        self._tick_off(notes)
        for note, answer in zip(notes, answers, strict=True):
            if answer is Answer.STALE:  # the run is over; so is its page
                self._pages.pop(note.fence, None)

    async def _write_apart(self, notes: list[Note], error: BadInput) -> None:
        """One of them cannot be stored. Its page's notes are dropped; other pages have nothing to do with
        it."""
        by_page = [list(of_page) for _, of_page in groupby(notes, lambda note: note.fence)]
        if len(by_page) == 1:
            self._lost(error)
            self._tick_off(notes)
            return
        for of_page in by_page:
            await self._write_batch(of_page)

    def _tick_off(self, notes: list[Note]) -> None:
        for fence, count in Counter(note.fence for note in notes).items():
            page = self._pages.get(fence)
            if page is not None:
                page.written(count)

    def _begin_flush(self) -> None:
        if self._flushing is None:  # else the one under way sees to it when it ends
            self._flushing = self._loop.create_task(self._flush_news())

    async def _flush_news(self) -> None:
        fences = list(self._news)
        try:
            await self.flush(fences)
        except EngineUnavailable:  # the exchange reports outages; the pages keep what they have
            self._news.update(fence for fence in fences if fence not in self._held)
        except EngineError as error:
            self._lost(error)
        self._flushing = None
        self._scheduled = False  # before the check: a thread that still saw True has added its news by then
        if self._news:
            self.written(next(iter(self._news)))


def clip_line(message: str) -> str:
    """Bounded, and without lone surrogates, which no engine stores."""
    return message.encode(errors="backslashreplace")[:MESSAGE_LIMIT].decode(errors="ignore")
