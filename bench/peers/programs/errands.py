"""A producer that runs errands, `python errands.py MODULE`: one JSON object a line on standard input, one
answer a line on standard output.

Each program of a peer gives a class with these methods; the clock is here, so that it is the same for all."""

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

PAYLOAD = "x" * 200
"""With the turn and the brackets some 210 bytes of arguments."""
BULK = 1_000
PAUSE_S = (0.010, 0.030)
"""Between two jobs to an idle worker: long enough for it to be idle again."""


class Jobs(Protocol):
    """One peer, seen by a producer."""

    async def setup(self) -> None:
        """Make tables, where there are any."""

    async def one(self, task: str, *arguments: object) -> None:
        """Enqueue a call of `noop(turn, payload)`, `stamp(job)` or `slow(job)`, as an application does."""

    async def many(self, turn: int, count: int) -> None:
        """Enqueue no-ops by the peer's call for many; the attribute is None where it has none."""

    async def left(self) -> int:
        """Jobs that the queue still knows and has not finished: waiting, scheduled or taken."""

    async def close(self) -> None: ...


def place() -> str:
    return os.environ["BENCH_URL"]


def main(module: str) -> None:
    """Serve with the class `Jobs` of a module, on the loop that it wants. (As a program of its own the module
    would name its tasks after `__main__`.)"""
    peer = import_module(module)
    with asyncio.Runner(loop_factory=getattr(peer, "new_event_loop", None)) as runner:
        runner.run(_serve(peer.Jobs))


async def _serve(make: Callable[[], Any]) -> None:
    jobs = make()
    while line := await asyncio.to_thread(sys.stdin.readline):
        errand = json.loads(line)
        answer = await _ERRANDS[errand.pop("do")](jobs, **errand)
        print(json.dumps(answer), flush=True)
    await jobs.close()


async def _setup(jobs: Jobs) -> dict[str, Any]:
    await jobs.setup()
    return {"bulk": getattr(jobs, "many", None) is not None}


async def _noop(jobs: Jobs, turn: int, count: int, bulk: bool) -> dict[str, Any]:
    began, cpu = time.monotonic(), time.process_time()
    if bulk:
        for first in range(0, count, BULK):
            await jobs.many(turn, min(BULK, count - first))
    else:
        for _ in range(count):
            await jobs.one("noop", turn, PAYLOAD)
    return {"took_s": time.monotonic() - began, "cpu_s": time.process_time() - cpu}


async def _stamps(jobs: Jobs, first: int, count: int) -> dict[str, Any]:
    called = []
    for job in range(first, first + count):
        await asyncio.sleep(random.uniform(*PAUSE_S))
        called.append(time.monotonic_ns())
        await jobs.one("stamp", job)
    return {"called": called}


async def _slow(jobs: Jobs, count: int) -> dict[str, Any]:
    for job in range(count):
        await jobs.one("slow", job)
    return {}


async def _left(jobs: Jobs) -> dict[str, Any]:
    return {"left": await jobs.left()}


_ERRANDS: dict[str, Callable[..., Any]] = {
    "setup": _setup,
    "noop": _noop,
    "stamps": _stamps,
    "slow": _slow,
    "left": _left,
}


if __name__ == "__main__":
    main(sys.argv[1])
