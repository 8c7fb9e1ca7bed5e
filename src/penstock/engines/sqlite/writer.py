"""The one thread of a process that writes: group commit.

SQLite has one writer at a time, so each process has one too: operations from all its callers queue
up for this thread, and whatever has come in while the last commit went to disk shares the next
transaction and its one fsync. Each operation runs in a savepoint of its own: one that is refused
undoes itself and leaves the others alone (by itself, it has the whole transaction for that). Answers
are given after the commit; if that fails, every operation of the group gets the error and none was
applied. Calls that say so (single enqueues) are merged further: those that stand next to each other
become one operation.
"""

import queue
import sqlite3
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from penstock.engines.sqlite.calls import Call, CallThread, answer_calls
from penstock.engines.sqlite.catalogue import Catalogue
from penstock.engines.sqlite.connection import begin, open_connection, patiently, roll_back, translate
from penstock.engines.sqlite.place import Place
from penstock.engines.sqlite.schema import prepare
from penstock.engines.sqlite.step import Step
from penstock.model.errors import BadInput
from penstock.model.event import Signal

GROUP_CALLS, GROUP_ITEMS = 256, 2_000
"""The most calls, and the most items in them, in one transaction: it bounds how long other processes
wait for the lock."""
MERGE_S = 0.002
"""A topic is signalled at once, and then at most once in this time; the last one is never dropped."""

_OF_ONE = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.DataError)
"""Errors of one operation, whose values do not fit, and not of the store."""


class Writer(CallThread):
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
            group, items, last = [call], call.size, False
            while len(group) < GROUP_CALLS and items < GROUP_ITEMS and not last:
                try:
                    call = self._calls.get_nowait()
                except queue.Empty:
                    break
                if call is None:
                    last = True
                else:
                    group.append(call)
                    items += call.size
            signals = self._transact(group)
            answer_calls(group)
            self._signal(signals)
            if last:
                return

    def _transact(self, group: list[Call[Any]]) -> list[Signal]:
        db, signals = self._db, []
        try:
            begin(db, self._place.lock_timeout)
            self._catalogue.refresh()
            if len(group) == 1:
                signals = self._apply(group, alone=True)
            else:
                for calls in _neighbours(group):
                    signals += self._apply(calls)
            if db.in_transaction:  # not if its only call was refused
                db.execute("COMMIT")
            return signals
        except Exception as error:
            self._undo()
            for call in group:
                call.error = translate(error, self._place)
            return []

    def _undo(self) -> None:
        """Nothing of this transaction stays, neither there nor in memory."""
        self._catalogue.forget()
        if self._db.in_transaction:  # some errors end it by themselves
            roll_back(self._db)

    def _apply(self, calls: list[Call[Any]], *, alone: bool = False) -> list[Signal]:
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
            return self._refuse(calls, error, alone=alone)
        for call, answer in zip(calls, answers, strict=True):
            call.answer = answer
        return signals

    def _refuse(self, calls: list[Call[Any]], error: Exception, *, alone: bool) -> list[Signal]:
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


def _neighbours(group: list[Call[Any]]) -> Iterator[list[Call[Any]]]:
    """The calls of a group, those next to each other that can be merged taken together."""
    for (merge, _), calls in groupby(group, key=lambda call: (call.merge, call.now)):
        if merge is None:
            yield from ([call] for call in calls)
        else:
            yield list(calls)
