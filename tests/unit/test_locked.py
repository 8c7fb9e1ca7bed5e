"""A lock never stays locked by a thread that has left, wherever an interrupt comes up."""

import ast
import dis
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tidemill.engine.locked import locked

ROOT = Path(__file__).parents[2]


class Interrupt(BaseException):
    """As KeyboardInterrupt, but no test runner takes it for its own."""


class InterruptedLock:
    """A lock with an interrupt at a chosen moment. (What a handler raises right after a call in C comes up as
    if that call had raised it.)"""

    def __init__(self, moment: str) -> None:
        self._moment = moment
        self.lock = threading.RLock()

    def acquire(self) -> bool:
        self._at("before acquire")
        self.lock.acquire()
        self._at("after acquire")
        return True

    def release(self) -> None:
        self.lock.release()
        self._at("after release")

    def _at(self, moment: str) -> None:
        if moment == self._moment:
            raise Interrupt


def is_free(lock: InterruptedLock) -> bool:
    """Whether another thread can have it."""
    found: list[bool] = []
    other = threading.Thread(target=lambda: found.append(lock.lock.acquire(blocking=False)))
    other.start()
    other.join()
    return found[0]


@pytest.mark.row("A3")
@pytest.mark.parametrize("moment", ["before acquire", "after acquire", "in the work", "after release"])
def test_an_interrupt_leaves_it_free(moment: str) -> None:
    lock = InterruptedLock(moment)

    def work() -> None:
        if moment == "in the work":
            raise Interrupt

    with pytest.raises(Interrupt):
        locked(lock, work)
    assert is_free(lock)


@pytest.mark.row("A3")
def test_who_was_interrupted_while_it_waited_does_not_release_the_lock_of_another() -> None:
    lock = InterruptedLock("before acquire")
    taken, over = threading.Event(), threading.Event()

    def hold() -> None:
        with lock.lock:
            taken.set()
            over.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    try:
        with pytest.raises(Interrupt):
            locked(lock, lambda: None)
        assert not is_free(lock)
    finally:
        over.set()
        holder.join()


@pytest.mark.row("A3")
def test_an_error_of_the_kind_that_release_raises_is_not_swallowed() -> None:
    def work() -> None:
        raise RuntimeError("of the work")

    lock = InterruptedLock("never")
    with pytest.raises(RuntimeError, match="of the work"):
        locked(lock, work)
    assert is_free(lock)


@pytest.mark.row("A3")
def test_no_handler_can_run_between_the_work_and_the_release() -> None:
    """Handlers run after calls, where functions begin, and where loops go round. Whichever way leads to
    `release`, none of these is on it after the work."""
    since_work: list[str] = []
    works = False
    releases = 0
    for instruction in dis.get_instructions(locked):
        name = instruction.opname
        if instruction.argval == "release":
            releases += 1
            assert not [one for one in since_work if one.startswith(_HANDLERS_RUN)], since_work
        since_work.append(name)
        works = works or instruction.argval == "work"
        work_ends = works and name == "CALL"
        if work_ends or name in _ARRIVES_FROM_ELSEWHERE:
            since_work, works = [], False
    assert releases == 4, "twice after the work, twice after an exception"


BY_THREADS_OF_OUR_OWN = {
    "engines/sqlite/db/shared.py": "engines are opened and closed in threads of an executor",
    "engines/sqlite/db/store.py": "the reader's thread",
    "engines/sqlite/db/writer.py": "the writer's thread; a calling thread takes the same lock by `locked`",
}
"""Modules with a `with` statement on a lock, and why no handler of a signal runs there."""


@pytest.mark.row("A3")
def test_a_lock_that_a_users_thread_passes_is_taken_by_locked() -> None:
    """On Python 3.14 a `with` statement may leave it locked."""
    source = ROOT / "src" / "tidemill"
    found = {
        str(path.relative_to(source)) for path in source.rglob("*.py") if _locks_by_with(path.read_text())
    }
    assert found == set(BY_THREADS_OF_OUR_OWN)


def _locks_by_with(text: str) -> bool:
    if "import threading" not in text:
        return False
    tree = ast.parse(text)
    locks = {
        ast.unparse(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _makes_a_lock(node.value)
        for target in node.targets
    }
    entered = {
        ast.unparse(item.context_expr)
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        for item in node.items
    }
    return bool(locks & entered)


def _makes_a_lock(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in _LOCKS


_LOCKS = {f"threading.{kind}" for kind in ("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore")}

_HANDLERS_RUN = ("CALL", "JUMP_BACKWARD", "RESUME", "FOR_ITER", "SEND", "WITH")
_ARRIVES_FROM_ELSEWHERE = ("PUSH_EXC_INFO", "RETURN_VALUE", "RERAISE")
"""What stands after these is reached by an exception or by a jump, not from the line before."""

STORM = """
import signal, sys, threading
from tidemill.engine.locked import locked

class Interrupt(BaseException): ...

def interrupt(*_):
    raise Interrupt

def nothing(): ...

def is_free():
    found = []
    other = threading.Thread(target=lambda: found.append(lock.acquire(blocking=False) and not lock.release()))
    other.start()
    other.join()
    return found[0]

signal.signal(signal.SIGALRM, interrupt)
lock = threading.RLock()
for round in range(2_000):
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + round % 50))
        while True:
            locked(lock, nothing)
    except Interrupt:
        pass
    assert is_free(), f"locked for ever after {round} interrupts"
"""


@pytest.mark.row("A3")
def test_thousands_of_interrupts_leave_it_free() -> None:
    """In a process of its own: the timer is that of the test runner's time limit. A `with` statement
    in place of `locked` fails here on Python 3.14."""
    run = subprocess.run(
        (sys.executable, "-c", STORM), cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
