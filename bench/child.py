"""One of two processes that drain the same store: `python -m bench.child ERRAND`.

Says "ready", waits for a line on standard input, drains, and reports. Ends when its input closes.
"""

import asyncio
import sys
import time
from pathlib import Path

import msgspec

from bench.claimer import Claimer
from bench.raw.sqlite import Loop
from penstock.engine.registry import connect


class Errand(msgspec.Struct, frozen=True, kw_only=True):
    engine: bool
    """False: the raw loop."""
    place: str
    """The engine's URL, or the path of the raw loop."""
    durability: str
    batch: int


class Report(msgspec.Struct, kw_only=True):
    jobs: int
    began: float
    """By the monotonic clock, which is the same for all processes of a machine."""
    ended: float
    cpu_s: float


def main(errand: Errand) -> Report | None:
    return asyncio.run(_by_engine(errand)) if errand.engine else _by_raw(errand)


async def _by_engine(errand: Errand) -> Report | None:
    engine = await connect(errand.place)
    try:
        claimer = await Claimer.join(engine)
        if not _told_to_go():
            return None
        began, cpu = time.monotonic(), time.process_time()
        jobs = await claimer.drain(errand.batch)
        return Report(jobs=jobs, began=began, ended=time.monotonic(), cpu_s=time.process_time() - cpu)
    finally:
        await engine.close()


def _by_raw(errand: Errand) -> Report | None:
    loop = Loop(Path(errand.place), errand.durability)
    try:
        if not _told_to_go():
            return None
        began, cpu = time.monotonic(), time.process_time()
        jobs = loop.drain(errand.batch)
        return Report(jobs=jobs, began=began, ended=time.monotonic(), cpu_s=time.process_time() - cpu)
    finally:
        loop.close()


def _told_to_go() -> bool:
    print("ready", flush=True)
    return sys.stdin.readline() == "go\n"


if __name__ == "__main__":
    report = main(msgspec.json.decode(sys.argv[1], type=Errand))
    if report is not None:
        print(msgspec.json.encode(report).decode(), flush=True)
