"""One of two processes that drain the same store: `python -m bench.child ERRAND`. See `race`."""

import asyncio
import sys
import time
from pathlib import Path

import msgspec

from bench.claimer import Claimer
from bench.race import Report
from bench.raw import postgres, redis, sqlite
from bench.stores import Drain, Raw, SqliteRaw
from tidemill.engine.registry import connect


class Errand(msgspec.Struct, frozen=True, kw_only=True):
    engine: bool
    """False: the raw loop."""
    place: str
    """The engine's URL; of the raw loop a URL or a path."""
    durability: str
    batch: int


async def main(errand: Errand) -> Report | None:
    if errand.engine:
        engine = await connect(errand.place)
        try:
            claimer = await Claimer.join(engine)
            overlapping = errand.place.startswith(("postgresql:", "redis:"))
            return await _race(claimer.drain_overlapping if overlapping else claimer.drain, errand.batch)
        finally:
            await engine.close()
    raw: Raw
    if errand.place.startswith("postgresql:"):
        raw = await postgres.Loop.open(errand.place)
    elif errand.place.startswith("redis:"):
        raw = await redis.Loop.open(errand.place)
    else:
        raw = SqliteRaw(sqlite.Loop(Path(errand.place), errand.durability))
    try:
        return await _race(raw.drain, errand.batch)
    finally:
        await raw.close()


async def _race(drain: Drain, batch: int) -> Report | None:
    print("ready", flush=True)
    if sys.stdin.readline() != "go\n":
        return None
    began, cpu = time.monotonic(), time.process_time()
    jobs = await drain(batch)
    return Report(jobs=jobs, began=began, ended=time.monotonic(), cpu_s=time.process_time() - cpu)


if __name__ == "__main__":
    report = asyncio.run(main(msgspec.json.decode(sys.argv[1], type=Errand)))
    if report is not None:
        print(msgspec.json.encode(report).decode(), flush=True)
