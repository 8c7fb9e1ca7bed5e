"""No connection to a file is open while its process forks.

SQLite keeps in memory which locks its process holds on a file. A child inherits that memory, but not the
locks: whatever it opens there later believes itself protected, and the next process that is the last to close
the file removes the log from under it, with the jobs in it. (Others found the file locked for good.) So
before a fork every store finishes what it does and closes its connections; the parent opens them again with
its next call, the child has never had any. `subprocess` does not come by here: what it starts is executed
at once.
"""

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """Something with connections."""

    def let_go(self) -> None: ...
    def go_on(self) -> None: ...


_stores: WeakSet[Forked] = WeakSet()
_held: list[Forked] = []


def add(store: Forked) -> None:
    """From now on it lets go before every fork of this process."""
    _stores.add(store)


def _before() -> None:
    for store in list(_stores):
        _held.append(store)  # first: if a handler of a signal raises, its locks must not stay locked
        store.let_go()


def _in_parent() -> None:
    while _held:
        _held.pop().go_on()


def _in_child() -> None:
    """They are the parent's, and so are their locks."""
    _held.clear()
    _stores.clear()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
