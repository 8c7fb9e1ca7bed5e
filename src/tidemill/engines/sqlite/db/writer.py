"""The one connection of a process that writes: group commit.

SQLite has one writer at a time, so each process has one too. Operations of all callers queue up for it. What
has come in while the last commit went to disk shares the next transaction and its one fsync.

- Each operation runs in a savepoint of its own. An operation that is refused is undone, and the others are
  left alone. (A single operation needs no savepoint: the whole transaction is undone.)
- Answers are given after the commit. If the commit fails, every operation of the group gets the error, and
  none was applied.
- Calls with a `merge` (single enqueues) that stand next to each other become one operation.

A loop must not wait for a disk, so a thread writes for loops. The thread of a blocking call waits anyway. So
it takes the writer's turn and writes itself, which saves two changes of thread and two of loop: a blocking
enqueue took 625 us of processor time with them, and 330 without. The thread that has the turn does the
work of all that wait for it.
"""

import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from typing import Any, TypeVar, cast

import msgspec

from tidemill.engine.locked import locked
from tidemill.engines.sqlite.cluster.catalogue import Catalogue
from tidemill.engines.sqlite.cluster.outbox import MERGE_S, Outbox, PubSub
from tidemill.engines.sqlite.db.calls import CallThread, ThreadCall, answer_calls
from tidemill.engines.sqlite.db.connection import begin, open_connection, patiently, roll_back, translate
from tidemill.engines.sqlite.db.schema import prepare
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.engines.sqlite.url import SqliteUrl
from tidemill.model.errors import (
    BadInput,
    EngineClosed,
    EngineError,
    EngineUnavailable,
    Refused,
    TidemillError,
)
from tidemill.model.event import Signal

T = TypeVar("T")

GROUP_CALLS, GROUP_ITEMS = 256, 2_000
"""The most calls, and the most items in them, in one transaction: it bounds how long other processes
wait for the lock."""
_OF_OURS = (
    TidemillError, sqlite3.Error, msgspec.MsgspecError,
    ArithmeticError, AttributeError, LookupError, TypeError, ValueError,
)  # fmt: skip
"""What an operation itself raises: refusals, errors of the store, and what follows from damaged data."""
_OF_ONE = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.DataError)
"""Errors of one operation, whose values do not fit, and not of the store."""


class Writer(CallThread):
    """The one connection of this process that writes."""

    def __init__(
        self,
        url: SqliteUrl,
        *,
        namespace: str,
        migrate: bool,
        pubsub: PubSub,
    ) -> None:
        super().__init__(f"tidemill-writer {url}")
        self._url = url
        self._namespace = namespace
        self._migrate = migrate
        self._outbox = Outbox(pubsub)
        self._turn = threading.RLock()
        """Held by the thread that uses the connection and the outbox. A calling thread takes it by
        `locked`."""
        self._waiting: deque[ThreadCall[Any]] = deque()
        """Calls of threads that wait for the turn."""
        self._stopping = False
        self._away = False
        """The connection was closed for a fork."""
        self._open_ended = False
        """A transaction was begun, and neither committed nor undone: the undoing itself was interrupted."""
        self._guest = False
        """The turn is a calling thread's, in which handlers of signals may run."""
        self._flushes = False
        """The thread wakes up in a moment to send what was held back."""

    def _open(self) -> None:
        self._use(patiently(self._url, self._connect))

    def _use(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._catalogue = Catalogue(db)

    def _connect(self) -> sqlite3.Connection:
        db = open_connection(self._url, writes=True)
        try:
            prepare(db, self._url, namespace=self._namespace, migrate=self._migrate)
        except BaseException:
            db.close()
            raise
        return db

    def stop(self) -> None:
        self._stopping = True
        super().stop()

    def let_go(self) -> None:
        """Take the turn and close the connection: a fork is about to happen (see `forks`)."""
        self._turn.acquire()
        if not self._ended:
            self._db.close()
            self._away = True

    def go_on(self) -> None:
        """Release the turn: the fork has happened, and this is the parent. The next call connects."""
        with suppress(RuntimeError):  # a handler of a signal raised in `let_go`: the turn was not taken
            self._turn.release()

    def run_here(self, call: ThreadCall[T]) -> T:
        """Do an operation in the calling thread, together with what other threads wait for."""
        try:
            self._waiting.append(call)
            locked(self._turn, lambda: self._do_waiting(call))
        except BaseException:
            with suppress(ValueError):  # no thread waits for it any more
                self._waiting.remove(call)
            raise
        if call.error is not None:
            raise call.error
        return cast(T, call.answer)

    def _do_waiting(self, call: ThreadCall[Any]) -> None:
        """Do what waits, until this call is answered; in the turn."""
        if self._guest:  # the turn is this thread's already: a handler of a signal calls, in the middle of it
            raise Refused("a handler of a signal made this call in the middle of another one: make it later")
        while not call.answered:  # the thread that had the turn may have done this call too
            if self._ended:
                raise EngineClosed("the engine was closed; open it again")
            if not self._waiting:  # the thread that had taken this call on was interrupted
                raise self._interrupted()
            self._guest = True
            try:
                self._do(self._together([]))
            finally:
                self._guest = False
        if self._outbox.held_back and not self._flushes:
            self._flushes = True
            self._calls.put(None)

    def _run(self) -> None:
        while not (self._stopping and self._calls.empty()):
            calls = self._collect()
            with self._turn:
                if self._open_ended:
                    self._undo()
                self._do(self._together(calls))
                self._flushes = self._outbox.held_back

    def _collect(self) -> list[ThreadCall[Any]]:
        """Calls of loops. None of them, if it is time to send what was held back, or if `None` was put."""
        calls: list[ThreadCall[Any]] = []
        items = 0
        try:
            call = self._calls.get(timeout=MERGE_S if self._flushes else None)
        except queue.Empty:
            return calls
        while call is not None:
            calls.append(call)
            items += call.size
            if len(calls) == GROUP_CALLS or items >= GROUP_ITEMS or self._calls.empty():
                break
            call = self._calls.get()
        return calls

    def _together(self, calls: list[ThreadCall[Any]]) -> list[ThreadCall[Any]]:
        """These calls, and those of waiting threads as long as they fit."""
        items = sum(call.size for call in calls)
        while self._waiting and len(calls) < GROUP_CALLS and items < GROUP_ITEMS:
            calls.append(self._waiting.popleft())
            items += calls[-1].size
        return calls

    def _do(self, group: list[ThreadCall[Any]]) -> None:
        """One transaction; in the turn."""
        signals: list[Signal] = []
        if group:
            try:
                signals = self._transact(group)
            except BaseException:  # also from the handler of a signal, before the first line of `_transact`
                for call in group:
                    call.error = self._interrupted()
                answer_calls(group)
                if self._open_ended:  # the file must not stay locked until this program's next call
                    self._calls.put(None)
                raise
            answer_calls(group)
        self._outbox.send(signals)

    def _shut(self) -> None:
        with self._turn:
            self._ended = True
            self._outbox.close()
            self._db.close()  # also where it was closed for a fork

    def _transact(self, group: list[ThreadCall[Any]]) -> list[Signal]:
        signals: list[Signal] = []
        try:
            if self._away:
                self._use(patiently(self._url, lambda: open_connection(self._url, writes=True)))
                self._away = False
            if self._open_ended:
                self._undo()
            db = self._db
            self._open_ended = True
            begin(db, self._url.lock_timeout)
            self._catalogue.refresh()
            if len(group) == 1:
                signals = self._apply(group, alone=True)
            else:
                for calls in _neighbours(group):
                    signals += self._apply(calls)
            if db.in_transaction:  # not if its only call was refused
                db.execute("COMMIT")
            self._open_ended = False
            return signals
        except BaseException as error:
            self._undo()
            if not isinstance(error, Exception) or self._is_interrupt(error):
                raise
            for call in group:
                call.error = error if isinstance(error, EngineError) else translate(error, self._url)
            return []

    def _is_interrupt(self, error: Exception) -> bool:
        """Whether the handler of a signal raised it, in the calling thread that has the turn."""
        return self._guest and not isinstance(error, _OF_OURS)

    def _interrupted(self) -> EngineUnavailable:
        return EngineUnavailable(f"a call of {self._url} was interrupted: it may be stored or not")

    def _undo(self) -> None:
        """Nothing of this transaction stays, neither in the file nor in memory."""
        self._catalogue.forget()
        if not self._away and self._db.in_transaction:  # some errors end it by themselves
            roll_back(self._db)
        self._open_ended = False

    def _apply(self, calls: list[ThreadCall[Any]], *, alone: bool = False) -> list[Signal]:
        """Run one call, or several as one operation, in a savepoint: one that is alone needs none."""
        db, first = self._db, calls[0]
        step = Step(db, self._catalogue, first.now)
        if not alone:
            db.execute("SAVEPOINT step")
        try:
            if first.merge is not None and len(calls) > 1:
                answers = first.merge(step, [call.item for call in calls])
            else:
                answers = [first.work(step)]
            signals = step.finish()
            if not alone:
                db.execute("RELEASE step")
        except sqlite3.Error as error:
            if not isinstance(error, _OF_ONE):
                raise  # the store is to blame, not this operation
            return self._refuse(calls, BadInput(f"a value has the wrong type: {error}"), alone=alone)
        except Exception as error:
            if self._is_interrupt(error):
                raise
            return self._refuse(calls, error, alone=alone)
        for call, answer in zip(calls, answers, strict=True):
            call.answer = answer
        return signals

    def _refuse(self, calls: list[ThreadCall[Any]], error: Exception, *, alone: bool) -> list[Signal]:
        """Undo an operation. Of several calls, only those that are to blame get the error."""
        if alone:
            self._undo()
            calls[0].error = error
            return []
        self._db.execute("ROLLBACK TO step")
        self._db.execute("RELEASE step")
        self._catalogue.forget()  # what it had read may have been undone
        self._catalogue.refresh()
        if len(calls) > 1:
            return [signal for call in calls for signal in self._apply([call])]
        calls[0].error = error
        return []


def _neighbours(group: list[ThreadCall[Any]]) -> Iterator[list[ThreadCall[Any]]]:
    """The calls of a group, those next to each other that can be merged taken together."""
    for (merge, _), calls in groupby(group, key=lambda call: (call.merge, call.now)):
        if merge is None:
            yield from ([call] for call in calls)
        else:
            yield list(calls)
