"""One queue in the ring: its broker, its workers, its producer, and one turn of all that is measured while
they work.

A turn belongs to one contender alone: its workers are started for it and ended after it. The workers are
stopped (SIGSTOP) while the jobs of the timed turn are enqueued, so that producing and consuming are not
measured together, and warm when they go on."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import TypeVar

import msgspec

from bench.peers.brokers import Broker
from bench.peers.catalogue import PROGRAMS, Peer
from bench.peers.ledgers import Ledger, Tally
from bench.peers.processes import PeerFailed, Workers
from bench.peers.producer import Producer, producing

PROCESSES = 2
WARM_UP = 200
WARM_UPS = 10
"""Batches at most, until both processes have had jobs."""
READY_S = 60.0
DRAIN_S = 180.0
POLL_S = 0.02
AFTER_S = 0.25
"""After the last job: its acknowledgement belongs to the processor time."""

TIDEMILL = Peer(
    name="tidemill",
    title="Tidemill",
    engine="",
    program="tidemill_jobs",
    worker="{bin}/python -m tidemill worker tidemill_jobs:app -p 2 -c 200",
    requirements=("tidemill",),
)

T = TypeVar("T")


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured in one turn."""

    jobs_s: float
    single_s: float
    bulk_s: float | None
    """None where the peer has no call for many."""
    cpu_us: float
    """Of workers and broker, for each job."""
    memory_mb: float
    waits_ms: list[float]
    """From the call of a single enqueue to the first line of the function."""


class Contender:
    """A peer, or Tidemill, with a broker of its own."""

    def __init__(self, peer: Peer, home: Path, broker: Broker, folder: Path) -> None:
        self.peer, self.broker = peer, broker
        self.ledger = Ledger(folder / "ledger")
        self.ledger.folder.mkdir()
        self._folder, self._turns, self._stamps = folder, count(1), 0
        fill = {"bin": str(home), "programs": str(PROGRAMS), "url": broker.place}
        self._worker = [part.format_map(fill) for part in peer.worker.split()]
        node = ["node", str(PROGRAMS / peer.program)]
        self._program = node if peer.node else [f"{home}/python", str(PROGRAMS / "errands.py"), peer.program]
        self._environment = {
            **os.environ,
            **peer.environment,
            "BENCH_URL": broker.url if peer is TIDEMILL else broker.place,
            "TIDEMILL_URL": broker.url,
            "BENCH_LEDGER": str(self.ledger.folder),
            "BENCH_MODULES": str(home),
            "PYTHONPATH": str(PROGRAMS),
        }

    async def turn(self, jobs: int, samples: int) -> Turn:
        """Everything but the kill."""
        async with self.producing() as producer, self.working(producer) as workers:
            waits = await self._waits(producer, workers, samples)
            workers.pause()
            turn, few = next(self._turns), max(1, jobs // 10)
            try:
                single, bulk = await self._enqueue(producer, turn, few, jobs)
                cpu_s = workers.cpu_s() + self.broker.cpu_s()
            finally:
                workers.resume()
            tally = await self._drained(workers, turn, jobs)
            await asyncio.sleep(AFTER_S)
            cpu_s = workers.cpu_s() + self.broker.cpu_s() - cpu_s
            return Turn(
                jobs_s=tally.rate,
                single_s=single,
                bulk_s=bulk,
                cpu_us=1e6 * cpu_s / jobs,
                memory_mb=workers.memory_mb(),
                waits_ms=waits,
            )

    @asynccontextmanager
    async def producing(self) -> AsyncIterator[Producer]:
        async with producing(self._program, self._environment, self._folder / "producer.log") as producer:
            yield producer

    @asynccontextmanager
    async def working(self, producer: Producer) -> AsyncIterator[Workers]:
        """Two worker processes that have had jobs. A block that kills them may start them again."""
        self._bulk = bool((await producer.ask("setup"))["bulk"])
        commands = [self._worker] * self.peer.copies
        workers = Workers(commands, self._environment, self._folder / "worker.log")
        try:
            await workers.start()
            await self._warm_up(producer, workers)
            yield workers
        finally:
            await workers.stop()

    async def until(self, workers: Workers, seconds: float, what: str, look: Callable[[], T | None]) -> T:
        """What `look` finds, as soon as it finds something."""
        try:
            async with asyncio.timeout(seconds):
                while (found := look()) is None:
                    workers.check()
                    await asyncio.sleep(POLL_S)
                return found
        except TimeoutError:
            said = workers.last_words()
            raise PeerFailed(f"{self.peer.name}: {what} not within {seconds:g} s: {said}") from None

    async def _warm_up(self, producer: Producer, workers: Workers) -> None:
        for _ in range(WARM_UPS):
            turn = next(self._turns)
            await producer.ask("noop", turn=turn, count=WARM_UP, bulk=self._bulk)
            if (await self._drained(workers, turn, WARM_UP)).processes >= PROCESSES:
                return

    async def _enqueue(
        self, producer: Producer, turn: int, few: int, jobs: int
    ) -> tuple[float, float | None]:
        """Some one by one, and the rest by the call for many; all one by one where there is none."""
        singles = few if self._bulk else jobs
        answer = await producer.ask("noop", turn=turn, count=singles, bulk=False)
        if not self._bulk:
            return singles / answer["took_s"], None
        many = await producer.ask("noop", turn=turn, count=jobs - few, bulk=True)
        return singles / answer["took_s"], (jobs - few) / many["took_s"]

    async def _drained(self, workers: Workers, turn: int, jobs: int) -> Tally:
        def done() -> Tally | None:
            tally = self.ledger.tally(turn)
            return tally if tally.jobs >= jobs else None

        seconds = READY_S if jobs <= WARM_UP else DRAIN_S
        return await self.until(workers, seconds, f"{jobs} jobs", done)

    async def _waits(self, producer: Producer, workers: Workers, samples: int) -> list[float]:
        first = self._stamps
        self._stamps += samples
        called = (await producer.ask("stamps", first=first, count=samples))["called"]

        def began() -> dict[int, int] | None:
            found = {event.job: event.at for event in reversed(self.ledger.events("stamp"))}
            return found if all(job in found for job in range(first, first + samples)) else None

        starts = await self.until(workers, READY_S, f"{samples} single jobs", began)
        return [round((starts[first + number] - at) / 1e6, 2) for number, at in enumerate(called)]


def tidemill_home() -> Path:
    """The environment that this runs in."""
    return Path(sys.executable).parent
