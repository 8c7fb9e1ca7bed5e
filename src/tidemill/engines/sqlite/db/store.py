"""The threads of one process for one database: a writer and a reader. Engines share them (`shared`).

Reads run beside the writer on a connection of their own (WAL: they see one moment and block no writer).
An in-memory database has no second connection; there reads take their turn with the writer.
"""

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from tidemill.engine.protocol import PROMOTE_LIMIT
from tidemill.engines.sqlite.cluster.outbox import PubSub
from tidemill.engines.sqlite.db import forks
from tidemill.engines.sqlite.db.calls import CallThread, LoopCall, ThreadCall, answer_calls
from tidemill.engines.sqlite.db.connection import begin, open_connection, patiently, roll_back, translate
from tidemill.engines.sqlite.db.writer import Writer
from tidemill.engines.sqlite.jobs import dependents
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.engines.sqlite.url import SqliteUrl
from tidemill.model.errors import EngineClosed, EngineError, SingleProcess
from tidemill.model.jobs.move import Moves
from tidemill.model.time import Instant

T = TypeVar("T")
Item = TypeVar("Item")


class Reader(CallThread):
    """Reads, one moment at a time."""

    def __init__(self, url: SqliteUrl) -> None:
        super().__init__(f"tidemill-reader {url}")
        self._url = url
        self._turn = threading.RLock()
        """Held by the thread that uses the connection."""
        self._away = False
        """The connection was closed for a fork."""

    def _open(self) -> None:
        self._db = patiently(self._url, lambda: open_connection(self._url, writes=False))

    def _shut(self) -> None:
        with self._turn:
            self._ended = True
            self._db.close()

    def let_go(self) -> None:
        """See `Writer.let_go`."""
        self._turn.acquire()
        if not self._ended:
            self._db.close()
            self._away = True

    def go_on(self) -> None:
        """See `Writer.go_on`."""
        with suppress(RuntimeError):
            self._turn.release()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            with self._turn:
                self._read(call)
            answer_calls([call])

    def _read(self, call: LoopCall[Any]) -> None:
        """Answer one call from one moment's state."""
        try:
            if self._away:
                self._open()
                self._away = False
            begin(self._db, self._url.lock_timeout, "BEGIN")
            call.answer = call.work(self._db)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            call.error = translate(error, self._url)
        except BaseException as error:
            call.error = error
        if not self._away and self._db.in_transaction:
            roll_back(self._db)


class SqliteStore:
    """The threads of one database."""

    def __init__(self, url: SqliteUrl, *, namespace: str, migrate: bool, pubsub: PubSub) -> None:
        self.url = url
        self.pid = os.getpid()
        self.writer = Writer(url, namespace=namespace, migrate=migrate, pubsub=pubsub)
        self.writer.start()
        self.reader: Reader | None = None
        if url.path is not None:
            self.reader = Reader(url)
            try:
                self.reader.start()
            except BaseException:
                self.writer.stop()
                raise
            forks.add(self)

    def let_go(self) -> None:
        """Hold no connection, until `go_on`."""
        self.writer.let_go()
        if self.reader is not None:
            self.reader.let_go()

    def go_on(self) -> None:
        """Connections may be opened again."""
        if self.reader is not None:
            self.reader.go_on()
        self.writer.go_on()

    def close(self) -> None:
        """Finish what is queued, then let go. Blocks for as long as the last commit takes."""
        if self.reader is not None:
            self.reader.stop()
        self.writer.stop()


class StoreSession:
    """One engine's use of a store: `write` for operations, `read` for queries."""

    def __init__(self, store: SqliteStore, url: SqliteUrl) -> None:
        self.url = url
        """As this engine's URL names it; the store may have been opened by another name of the file."""
        self._store = store
        self._closed = False
        self._last_write: LoopCall[Any] | None = None
        self._last_read: LoopCall[Any] | None = None

    async def write(self, work: Callable[[Step], T], now: Instant | None = None) -> T:
        """Run an operation in the next transaction; its answer comes after the commit."""
        self.check()
        call: LoopCall[T] = LoopCall(work, now)
        self._last_write = call
        self._store.writer.put(call)
        return await call.future

    async def change(
        self, work: Callable[[Step], T], now: Instant | None = None, moves: Moves | None = None
    ) -> T:
        """`write` for an operation that may end parents: the same step updates their children. `moves` is
        filled after the commit: until then the operation may be undone and done again."""

        def whole(step: Step) -> tuple[T, Moves | None]:
            if moves is not None:
                step.moves = Moves()
            answer = work(step)
            dependents.update_if_needed(step, PROMOTE_LIMIT)
            return answer, step.moves

        answer, moved = await self.write(whole, now)
        if moves is not None and moved is not None:
            moves.take(moved)
        return answer

    async def merge(
        self, work: Callable[[Step, list[Item]], list[T]], item: Item, *, size: int, now: Instant | None
    ) -> T:
        """Run an operation that is done together with its like, wherever they stand next to each other."""
        self.check()
        call: LoopCall[T] = LoopCall(lambda step: work(step, [item])[0], now, work, item, size)
        self._last_write = call
        self._store.writer.put(call)
        return await call.future

    def merge_here(
        self, work: Callable[[Step, list[Item]], list[T]], item: Item, *, size: int, now: Instant | None
    ) -> T:
        """`merge` for a thread that waits: it does the work itself, unless another is at it."""
        self.check()
        return self._store.writer.run_here(
            ThreadCall(lambda step: work(step, [item])[0], now, work, item, size)
        )

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query on one moment's state."""
        self.check()
        if self._store.reader is None:
            return await self.write(lambda step: work(step.db))
        call: LoopCall[T] = LoopCall(work, None)
        self._last_read = call
        self._store.reader.put(call)
        return await call.future

    def check(self) -> None:
        """Refuse what could not be answered."""
        if self._closed:
            raise EngineClosed(f"{self.url} was closed by this process; open it again")
        if os.getpid() != self._store.pid:
            raise SingleProcess(
                f"{self.url} was opened before this process was forked; open it again here"
                + ("" if self.url.path else " (an in-memory database cannot be shared)")
            )

    async def close(self) -> None:
        """Take no more calls, and finish those already made: others may keep the store open for long. Each
        thread takes calls in their order, so behind the last one an empty one shows that all are done."""
        self._closed = True
        if os.getpid() != self._store.pid:
            return
        for thread, last in (self._store.writer, self._last_write), (self._store.reader, self._last_read):
            if thread is not None and last is not None and not last.answered:
                done: LoopCall[None] = LoopCall(_nothing, None)
                with suppress(EngineError):  # it only had to wait
                    thread.put(done)
                    await done.future


def _nothing(_: object) -> None:
    pass
