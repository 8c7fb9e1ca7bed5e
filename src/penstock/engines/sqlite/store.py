"""One process's hold on one database: a writer thread with group commit, and a reader thread.

SQLite has one writer at a time, so each process has one too: operations from all its callers queue
up for the writer thread, and whatever has come in while the last commit went to disk shares the next
transaction and its one fsync. Each operation runs in a savepoint of its own: one that is refused
undoes itself and leaves the others alone. Answers are given after the commit; if that fails, every
operation of the group gets the error and none was applied. Calls that say so (single enqueues) are
merged further: those that stand next to each other become one operation.

Reads run beside it on a connection of their own (WAL: they see one moment and block nobody). An
in-memory database has no second connection; there reads take their turn with the writer.
"""

import asyncio
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, Generic, TypeVar

from penstock.engines.sqlite.catalogue import Catalogue
from penstock.engines.sqlite.connection import begin, open_connection, patiently, translate
from penstock.engines.sqlite.place import Place
from penstock.engines.sqlite.schema import prepare
from penstock.engines.sqlite.step import Step
from penstock.model.errors import EngineClosed, SingleProcess
from penstock.model.event import Signal
from penstock.model.time import Instant

T = TypeVar("T")
Item = TypeVar("Item")

GROUP_LIMIT = 256
"""The most operations in one transaction: it bounds how long other processes wait for the lock."""
MERGE_S = 0.002
"""A topic is signalled at once, and then at most once in this time; the last one is never dropped."""


Merge = Callable[[Step, list[Any]], list[Any]]
"""One operation for the items of several calls: their answers, in order."""


class _Call(Generic[T]):
    """An operation on its way through a thread."""

    __slots__ = ("answer", "error", "future", "item", "loop", "merge", "now", "work")

    def __init__(
        self,
        work: Callable[[Any], T],
        now: Instant | None,
        merge: Merge | None = None,
        item: object = None,
    ) -> None:
        self.work = work
        self.merge = merge
        self.item = item
        self.now = now
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self.loop.create_future()
        self.answer: T | None = None
        self.error: BaseException | None = None


def _resolve(calls: list[_Call[Any]]) -> None:
    for call in calls:
        if call.future.done():  # the caller was cancelled meanwhile
            continue
        if call.error is not None:
            call.future.set_exception(call.error)
        else:
            call.future.set_result(call.answer)


def _answer(calls: list[_Call[Any]]) -> None:
    loops: dict[asyncio.AbstractEventLoop, list[_Call[Any]]] = {}
    for call in calls:
        loops.setdefault(call.loop, []).append(call)
    for loop, own in loops.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, own)


class _Thread:
    """A thread that owns a connection and works off calls."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[_Call[Any] | None] = queue.SimpleQueue()
        self._failed: BaseException | None = None
        self._opened = threading.Event()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._opened.wait()
        if self._failed is not None:
            self._thread.join()
            raise self._failed

    def put(self, call: _Call[Any]) -> None:
        self._calls.put(call)

    def stop(self) -> None:
        self._calls.put(None)
        self._thread.join()

    def _main(self) -> None:
        try:
            self._open()
        except BaseException as error:
            self._failed = error
            return
        finally:
            self._opened.set()
        try:
            self._run()
        finally:
            self._shut()

    def _open(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        raise NotImplementedError

    def _shut(self) -> None:
        raise NotImplementedError


class Writer(_Thread):
    """The one thread of this process that writes."""

    def __init__(
        self,
        place: Place,
        *,
        namespace: str,
        migrate: bool,
        publish: Callable[[list[Signal]], None],
    ) -> None:
        super().__init__(f"penstock-writer {place}")
        self._place = place
        self._namespace = namespace
        self._migrate = migrate
        self._publish = publish
        self._sent: dict[str, float] = {}
        self._held_back: dict[str, Signal] = {}

    def _open(self) -> None:
        self._db = patiently(self._place, self._connect)
        self._catalogue = Catalogue(self._db)

    def _connect(self) -> sqlite3.Connection:
        db = open_connection(self._place, writes=True)
        try:
            prepare(db, self._place, namespace=self._namespace, migrate=self._migrate)
        except BaseException:
            db.close()
            raise
        return db

    def _shut(self) -> None:
        self._publish(list(self._held_back.values()))
        self._db.close()

    def _run(self) -> None:
        while True:
            try:
                call = self._calls.get(timeout=MERGE_S if self._held_back else None)
            except queue.Empty:
                self._signal([])
                continue
            if call is None:
                return
            group, last = [call], False
            while len(group) < GROUP_LIMIT and not last:
                try:
                    call = self._calls.get_nowait()
                except queue.Empty:
                    break
                if call is None:
                    last = True
                else:
                    group.append(call)
            signals = self._transact(group)
            _answer(group)
            self._signal(signals)
            if last:
                return

    def _transact(self, group: list[_Call[Any]]) -> list[Signal]:
        db, signals = self._db, []
        try:
            begin(db, self._place.lock_timeout)
            self._catalogue.refresh()
            for calls in _neighbours(group):
                signals += self._apply(calls)
            db.execute("COMMIT")
        except sqlite3.Error as error:
            for call in group:
                call.error = translate(error, self._place)
            signals = []
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")
                self._catalogue.forget()
        return signals

    def _apply(self, calls: list[_Call[Any]]) -> list[Signal]:
        """Run one call, or several as one operation, in a savepoint."""
        db, first = self._db, calls[0]
        step = Step(db, self._catalogue, first.now)
        db.execute("SAVEPOINT step")
        try:
            if first.merge is not None and len(calls) > 1:
                answers = first.merge(step, [call.item for call in calls])
            else:
                answers = [first.work(step)]
            signals = step.finish()
            db.execute("RELEASE step")
        except sqlite3.Error:
            raise
        except BaseException as error:
            db.execute("ROLLBACK TO step")
            db.execute("RELEASE step")
            self._catalogue.forget()
            self._catalogue.refresh()
            if len(calls) > 1:  # each for itself: only those that are to blame get the error
                return [signal for call in calls for signal in self._apply([call])]
            first.error = error
            return []
        for call, answer in zip(calls, answers, strict=True):
            call.answer = answer
        return signals

    def _signal(self, signals: list[Signal]) -> None:
        """Publish after the commit: the first of a topic at once, a burst merged."""
        now, due = time.monotonic(), []
        for signal in [*self._held_back.values(), *signals]:
            name = f"{signal.topic} {signal.text}"
            if now - self._sent.get(name, 0) >= MERGE_S:
                self._sent[name] = now
                self._held_back.pop(name, None)
                due.append(signal)
            else:
                self._held_back[name] = signal
        if len(self._sent) > 1_000:
            self._sent = {name: at for name, at in self._sent.items() if now - at < MERGE_S}
        if due:
            self._publish(due)


def _neighbours(group: list[_Call[Any]]) -> Iterator[list[_Call[Any]]]:
    """The calls of a group, those next to each other that can be merged taken together."""
    for (merge, _), calls in groupby(group, key=lambda call: (call.merge, call.now)):
        if merge is None:
            yield from ([call] for call in calls)
        else:
            yield list(calls)


class Reader(_Thread):
    """Reads, one moment at a time."""

    def __init__(self, place: Place) -> None:
        super().__init__(f"penstock-reader {place}")
        self._place = place

    def _open(self) -> None:
        self._db = patiently(self._place, lambda: open_connection(self._place, writes=False))

    def _shut(self) -> None:
        self._db.close()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                begin(self._db, self._place.lock_timeout, "BEGIN")
                call.answer = call.work(self._db)
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                call.error = translate(error, self._place)
            except BaseException as error:
                call.error = error
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            _answer([call])


class Store:
    """The threads of one database. Engines of one process may share it, if it is in memory."""

    def __init__(
        self, place: Place, *, namespace: str, migrate: bool, publish: Callable[[list[Signal]], None]
    ) -> None:
        self.place = place
        self.pid = os.getpid()
        self.writer = Writer(place, namespace=namespace, migrate=migrate, publish=publish)
        self.writer.start()
        self.reader: Reader | None = None
        if place.path is not None:
            self.reader = Reader(place)
            self.reader.start()

    def close(self) -> None:
        """Finish what is queued, then let go. Blocks for as long as the last commit takes."""
        if self.reader is not None:
            self.reader.stop()
        self.writer.stop()


class Session:
    """One engine's use of a store: `write` for operations, `read` for looks."""

    def __init__(self, store: Store) -> None:
        self.place = store.place
        self._store = store
        self._closed = False

    async def write(self, work: Callable[[Step], T], now: Instant | None = None) -> T:
        """Run an operation in the next transaction; its answer comes after the commit."""
        self.check()
        call = _Call(work, now)
        self._store.writer.put(call)
        return await call.future

    async def merge(
        self, work: Callable[[Step, list[Item]], list[T]], item: Item, now: Instant | None = None
    ) -> T:
        """Run an operation that is done together with its like, wherever they stand next to each other."""
        self.check()
        call = _Call(lambda step: work(step, [item])[0], now, work, item)
        self._store.writer.put(call)
        return await call.future

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a look on one moment's state."""
        self.check()
        if self._store.reader is None:
            return await self.write(lambda step: work(step.db))
        call = _Call(work, None)
        self._store.reader.put(call)
        return await call.future

    def check(self) -> None:
        """Refuse what could not be answered."""
        if self._closed:
            raise EngineClosed(f"{self.place} was closed by this process; open it again")
        if os.getpid() != self._store.pid:
            raise SingleProcess(
                f"{self.place} was opened before this process was forked; open it again here"
                + ("" if self.place.path else " (an in-memory database cannot be shared)")
            )

    def close(self) -> None:
        """Take no more calls."""
        self._closed = True
