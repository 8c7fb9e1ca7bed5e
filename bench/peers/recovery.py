"""What is left after `kill -9`: 20 jobs of 2 s, all workers killed while they run, workers started again."""

import asyncio
import time

import msgspec

from bench.peers.contender import READY_S, Contender
from bench.peers.ledgers import Event

JOBS = 20
RUN_S = 1.0
"""Of their two seconds, before the kill."""
PATIENCE_S = 75.0
NOTHING_S = 5.0
"""If the queue knows nothing more and nothing runs for so long, the rest is lost."""
POLL_S = 0.5


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the jobs after the restart."""

    interrupted: int
    """Running when their worker was killed."""
    back: int
    """Of all, those that ran after the restart."""
    held: int
    """Those that the queue still knew, and did not give out while we waited."""
    lost: int
    back_s: float | None
    """From the restart until the last interrupted job that came back ran again."""

    def __str__(self) -> str:
        if self.back == JOBS:
            return f"all back in {self.back_s:.0f} s" if self.back_s is not None else "all run"
        parts = [f"{self.lost} lost" if self.lost else "", f"{self.held} held" if self.held else ""]
        return ", ".join(part for part in parts if part) + f" after {PATIENCE_S:.0f} s" * bool(self.held)


async def measure(contender: Contender) -> Recovery:
    async with contender.producing() as producer, contender.working(producer) as workers:
        await producer.ask("slow", count=JOBS)
        ledger = contender.ledger
        await contender.until(workers, READY_S, "a slow job", lambda: ledger.events("begin") or None)
        await asyncio.sleep(RUN_S)
        await workers.kill()
        interrupted = {event.job for event in ledger.events("begin")}
        restarted = time.monotonic_ns()
        await workers.start()
        quiet_since = time.monotonic()
        give_up = quiet_since + PATIENCE_S
        while True:
            await asyncio.sleep(POLL_S)
            workers.check()
            begun = _since(restarted, ledger.events("begin"))
            running = len(begun) - len(_since(restarted, ledger.events("end")))
            left = (await producer.ask("left"))["left"]
            now = time.monotonic()
            if left or running:
                quiet_since = now
            if len(begun) == JOBS or now > give_up or now - quiet_since > NOTHING_S:
                return judge(interrupted, begun, restarted, left - running)


def _since(moment: int, events: list[Event]) -> dict[int, int]:
    """When each job's first such event after the moment was."""
    return {event.job: event.at for event in reversed(events) if event.at > moment}


def judge(interrupted: set[int], begun: dict[int, int], restarted: int, waiting: int) -> Recovery:
    """`waiting` is what the queue still knows of jobs that do not run."""
    missing = JOBS - len(begun)
    held = min(missing, max(0, waiting))
    again = [begun[job] for job in interrupted if job in begun]
    return Recovery(
        interrupted=len(interrupted),
        back=len(begun),
        held=held,
        lost=missing - held,
        back_s=(max(again) - restarted) / 1e9 if again else None,
    )
