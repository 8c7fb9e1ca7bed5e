"""A program that enqueues, cancels, replays and reads, and writes down what it was told.

    python -m tests.chaos.producer SEED OPERATIONS_A_SECOND

It goes on until it is killed or told to end (SIGTERM). Everything goes through the public API; the ids
are its own, so that an operation whose answer never came can be looked up later.
"""

import os
import random
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.chaos import app as tasks
from tests.chaos.history import Recorder
from tests.chaos.operator import Operator
from tests.chaos.queues import CROWD, TENANTS
from tests.chaos.recording import phase_of
from tests.integration.app.claimer import record_of
from tidemill.model.errors import IdTaken, TidemillError, UnknownJob
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import FINAL

OPEN_LIMIT = 400
"""The most of its jobs that have not ended, as far as it knows, before it waits: a cluster that is mostly
down must not be left with more than it can do afterwards."""
READ_AT_ONCE, POLL_S = 50, 0.1
"""How many of them it reads then, and how often."""
RECENT = 200
"""How many of its own jobs it remembers to come back to."""
PARENT_SHARE = 0.1
ANSWERING = ("cancel", "replay", "read")
"""Operations whose answers are written down."""

MIX = {
    "one": 40, "many": 6, "delayed": 10, "keyed": 5, "narrow": 3, "fair": 5, "crowd": 0.5, "valve": 3,
    "unique": 8, "after": 5, "again": 4, "cancel": 7, "replay": 4, "read": 10, "poison": 0.3, "operate": 8,
}  # fmt: skip
CALLS = {
    "quick": 50, "nap": 25, "toil": 8, "flaky": 8, "doomed": 2, "overruns": 1, "apart": 1, "hog": 1,
}  # fmt: skip


OPERATOR = "p0"
"""The producer that changes a queue's options. One is enough: what is in force is then known."""
CROWD_SIZE = 30

NAPS_S = [float(one) for one in os.environ.get("CHAOS_NAP", "0.005 0.02 0.1 0.5").split()]
for kind in ("poison", "crowd", "narrow", "keyed", "valve", "operate"):
    MIX[kind] = float(os.environ.get(f"CHAOS_{kind.upper()}", MIX[kind]))
if os.environ.get("CHAOS_WHO") != OPERATOR:
    del MIX["operate"]


class Producer:
    """One of them."""

    def __init__(self, recorder: Recorder, dice: random.Random) -> None:
        self._recorder = recorder
        self._dice = dice
        self._recent: list[str] = []
        self._open: deque[str] = deque()
        self._operator = Operator(dice, lambda kind, text, call: self._do(kind, [], text, call))
        self._acts: dict[str, Callable[[], None]] = {
            name: self.operate if name == "operate" else getattr(self, f"_{name}") for name in MIX
        }

    def must_wait(self) -> bool:
        """Whether too many of its jobs have not ended; reads the oldest of them."""
        for _ in range(min(READ_AT_ONCE, len(self._open)) if len(self._open) > OPEN_LIMIT else 0):
            job = self._open.popleft()
            try:
                ended = tasks.app.job(UUID(job)).info().state in FINAL
            except UnknownJob:
                ended = True  # its enqueue is one of those that failed
            except TidemillError:
                ended = False
            if not ended:
                self._open.append(job)
        return len(self._open) > OPEN_LIMIT

    def operate(self) -> None:
        """If it is the operator."""
        if "operate" in MIX:
            self._operator.act()

    def act(self) -> None:
        """One operation."""
        (name,) = self._dice.choices(list(MIX), list(MIX.values()))
        self._acts[name]()

    def _one(self) -> None:
        self._put(self._call_name(), [new_id().hex()])

    def _many(self) -> None:
        self._put_many([self._call_name() for _ in range(self._dice.randint(2, 20))])

    def _delayed(self) -> None:
        self._put(self._call_name(), [new_id().hex()], delay=self._dice.uniform(0.1, 3))

    def _keyed(self) -> None:
        """Some of one key at once."""
        key = f"key{self._dice.randrange(tasks.KEYS)}"
        count = self._dice.randint(1, 6)
        self._put_many(["share"] * count, lambda _: (key, self._dice.uniform(0.001, 0.05)))

    def _narrow(self) -> None:
        self._put_many(self._dice.choices(("squeeze", "nip"), k=self._dice.randint(3, 8)))

    def _fair(self) -> None:
        tenant, count = self._dice.choice(TENANTS), self._dice.randint(1, 6)
        self._put_many(["serve"] * count, lambda _: (tenant, self._dice.uniform(0.001, 0.05)))

    def _crowd(self) -> None:
        """One tenant floods the queue that all share."""
        self._put_many(["serve"] * CROWD_SIZE, lambda _: (CROWD, self._dice.uniform(0.01, 0.05)))

    def _valve(self) -> None:
        self._put_many(["flow"] * self._dice.randint(2, 8))

    def _unique(self) -> None:
        """A call that meets another job is refused, and its id is that of no job."""
        job = new_id().hex()

        def enqueue() -> None:
            tasks.single.using(id=UUID(job)).enqueue(*self._arguments("single"))
            self._remember([job])

        self._do("enqueue", [job], "single", enqueue)

    def _after(self) -> None:
        if self._recent:
            self._put("quick", [new_id().hex()], after=[UUID(self._pick())], parent_died="run")

    def _again(self) -> None:
        """The same id once more, for another call: the job that is there stays as it is."""
        if self._recent:
            job = self._pick()
            self._do("enqueue", [job], "quick", lambda: self._taken(UUID(job)))
            self._remember([job])

    def _taken(self, job: UUID) -> None:
        with suppress(IdTaken):  # it may have been this very call; or one that was never stored, and is now
            tasks.quick.using(id=job).enqueue()

    def _poison(self) -> None:
        self._put("poison", [new_id().hex()])

    def _cancel(self) -> None:
        if self._recent:
            job = self._pick()
            self._do("cancel", [job], "", lambda: [str(tasks.app.job(UUID(job)).cancel())])

    def _replay(self) -> None:
        """A job that has ended, by what we last saw of it."""
        if not self._recent:
            return
        handle = tasks.app.job(UUID(self._pick()))
        with suppress(TidemillError):
            if handle.info().state in FINAL and not handle.task.endswith(tasks.ENDS_DEAD):
                self._do("replay", [handle.uuid.hex], "", lambda: [str(handle.replay())])

    def _read(self) -> None:
        if not self._recent:
            return
        job = self._pick()

        def state() -> list[str]:
            record = record_of(tasks.app.job(UUID(job)))
            return [record.state.value, str(record.replays), str(record.settled_fence or 0)]

        with suppress(UnknownJob):  # its enqueue is one of the unknown ones
            self._do("read", [job], "", state)

    def _put(self, name: str, ids: list[str], **options: Any) -> None:
        bound = getattr(tasks, name).using(id=UUID(ids[0]), **options)
        self._do("enqueue", ids, name, lambda: bound.enqueue(*self._arguments(name)))
        self._remember(ids)

    def _put_many(self, names: list[str], arguments: Callable[[str], tuple[Any, ...]] | None = None) -> None:
        ids = [new_id().hex() for _ in names]
        arguments = arguments or self._arguments

        def enqueue() -> Any:
            return tasks.app.enqueue_many(
                [
                    getattr(tasks, name).using(id=UUID(one)).call(*arguments(name))
                    for name, one in zip(names, ids, strict=True)
                ]
            )

        self._do("enqueue", ids, ",".join(names), enqueue)
        self._remember(ids)

    def _do(self, kind: str, ids: list[str], text: str, call: Callable[[], Any]) -> bool:
        """False: nobody knows whether it was done."""
        op = self._recorder.invoked(kind, jobs=ids, text=text)
        try:
            answer = call()
        except TidemillError as error:
            phase = phase_of(error)
            self._recorder.write(kind, op=op, phase=phase, text=f"{type(error).__name__}: {error}"[:200])
            return phase != "unknown"
        self._recorder.write(kind, op=op, phase="ok", answers=answer if kind in ANSWERING else [])
        return True

    def _call_name(self) -> str:
        (name,) = self._dice.choices(list(CALLS), list(CALLS.values()))
        return name

    def _arguments(self, name: str) -> tuple[Any, ...]:
        match name:
            case "nap" | "toil":
                return (self._dice.choice(NAPS_S),)
            case "apart":
                return (0.05,)
            case "hog":
                return (self._dice.choice((0.1, 1.0)),)
            case "squeeze" | "nip" | "flow":
                return (self._dice.uniform(0.01, 0.15),)
            case "single":
                return (f"key{self._dice.randrange(tasks.KEYS)}", self._dice.uniform(0.001, 0.1))
            case "flaky":
                return (self._dice.randint(1, tasks.MOST_ATTEMPTS - 1),)
            case _:
                return ()

    def _pick(self) -> str:
        return self._dice.choice(self._recent)

    def _remember(self, ids: list[str]) -> None:
        self._recent = [*self._recent, *ids][-RECENT:]
        self._open.extend(ids)


def main(seed: int, rate: float) -> None:
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    dice = random.Random(seed)
    one = Producer(Recorder(Path(os.environ["CHAOS_FOLDER"]), os.environ["CHAOS_WHO"]), dice)
    while not stopping:
        if one.must_wait():
            one.operate()  # it may wait for a queue that the operator has paused
            time.sleep(POLL_S)
            continue
        one.act()
        time.sleep(dice.expovariate(rate))
    tasks.app.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
