"""The stores that are measured: a fresh place of each name, for the engine and for the raw loop beside it."""

import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from redis import Redis

from bench.raw import postgres, redis, sqlite
from tests.servers.postgres import PostgresServer, program
from tests.servers.redis import RedisServer
from tidemill.cli.bench.workers import cpu_s_of

RawJob = tuple[bytes, bytes]
"""Id and body."""


class Raw(Protocol):
    """The raw loop of a store."""

    async def enqueue(self, jobs: Sequence[RawJob]) -> None:
        """Store jobs in one transaction."""
        ...

    async def drain(self, batch: int) -> int:
        """Claim and settle until nothing is left, in the fastest shape."""
        ...

    async def close(self) -> None: ...


class Store(Protocol):
    """Where engines and raw loops are put for one run."""

    @property
    def batches(self) -> Sequence[int]:
        """Sizes of claims worth measuring."""
        ...

    @property
    def wanted(self) -> Mapping[str, float]:
        """The least ratio that we are content with, by case or measure."""
        ...

    def url(self, name: str, durability: str | None = None) -> str:
        """The engine's place of that name."""
        ...

    def raw_place(self, name: str) -> str:
        """The raw loop's place of that name: a path or a URL."""
        ...

    async def raw(self, name: str) -> Raw:
        """The raw loop there."""
        ...

    def cpu_s(self) -> float:
        """Processor time that the store's own processes have taken so far."""
        ...

    def close(self) -> None: ...


class SqliteStore:
    """Files in a folder."""

    batches = (1, 10, 100)
    wanted = {"one trip, batch 100": 0.7, "bulk": 0.6}  # noqa: RUF012

    def __init__(self, folder: Path, durability: str) -> None:
        self._folder, self._durability = folder, durability

    def url(self, name: str, durability: str | None = None) -> str:
        return f"sqlite:///{self._folder / name}.db?durability={durability or self._durability}"

    def raw_place(self, name: str) -> str:
        return str(self._folder / f"{name}-raw.db")

    async def raw(self, name: str) -> "SqliteRaw":
        return SqliteRaw(sqlite.Loop(Path(self.raw_place(name)), self._durability))

    def cpu_s(self) -> float:
        return 0.0

    def close(self) -> None:
        pass


class SqliteRaw:
    """The raw loop on SQLite. It blocks, as it would for itself."""

    def __init__(self, loop: sqlite.Loop) -> None:
        self._loop = loop

    async def enqueue(self, jobs: Sequence[RawJob]) -> None:
        self._loop.enqueue(jobs)

    async def drain(self, batch: int) -> int:
        return self._loop.drain(batch)

    async def drain_apart(self, batch: int) -> int:
        return self._loop.drain_apart(batch)

    async def close(self) -> None:
        self._loop.close()


class PostgresStore:
    """Databases on a private server with stock settings."""

    batches = (10, 100)
    wanted = {"overlapping, batch 100": 0.45, "bulk": 0.6, "50 at once": 0.4, "scheduled": 0.95}  # noqa: RUF012

    def __init__(self, durability: str) -> None:
        self._suffix = "" if durability == "full" else "?durability=off"
        # Counted are statements only of databases where it is switched on.
        settings = {"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "none"}
        self._server = PostgresServer(durable=True, settings=settings).start()
        self._made: set[str] = set()

    def url(self, name: str, durability: str | None = None) -> str:
        suffix = self._suffix if durability is None else "" if durability == "full" else "?durability=off"
        return self.raw_place(name) + suffix

    def raw_place(self, name: str) -> str:
        """A database, for clients that are not our engine."""
        if name not in self._made:
            place = ("-h", "127.0.0.1", "-p", str(self._server.port), "-U", "tidemill")
            subprocess.run([program("createdb"), *place, name], check=True)
            self._made.add(name)
        return self._server.url(name)

    async def raw(self, name: str) -> postgres.Loop:
        return await postgres.Loop.open(self.raw_place(name))

    def cpu_s(self) -> float:
        pids = self._server.pids()
        return cpu_s_of(pids[0], with_ended_children=True) + sum(map(cpu_s_of, pids[1:]))

    def close(self) -> None:
        self._server.close()


class RedisStore:
    """Logical databases of a private server that syncs its append-only file once a second."""

    batches = (10, 100)
    wanted = {"overlapping, batch 100": 0.45, "bulk": 0.6, "50 at once": 0.4, "scheduled": 0.95}  # noqa: RUF012

    def __init__(self, durability: str) -> None:
        self._server = RedisServer(settings={} if durability == "full" else {"appendonly": "no"}).start()
        self._numbers: dict[str, int] = {}

    def url(self, name: str, durability: str | None = None) -> str:
        """How durable it is the server decides, for all its databases."""
        return self._server.url(self._numbers.setdefault(name, len(self._numbers)))

    def raw_place(self, name: str) -> str:
        return self.url(name)

    async def raw(self, name: str) -> redis.Loop:
        return await redis.Loop.open(self.raw_place(name))

    def cpu_s(self) -> float:
        """With that of the children that have rewritten the file."""
        return cpu_s_of(self._server.pid, with_ended_children=True)

    def used_bytes(self, name: str) -> int:
        """Memory that one database's keys take, as the server counts them one by one. Its `used_memory` has
        the buffers of connections too, and on Redis 8 the interpreter of scripts: a megabyte that comes and
        goes."""
        with Redis.from_url(self.url(name)) as client:
            keys = list(client.scan_iter(count=1_000))
            counted = client.pipeline(transaction=False)
            for key in keys:
                counted.memory_usage(key, samples=0)  # of all elements
            return sum(size or 0 for size in counted.execute())

    def close(self) -> None:
        self._server.close()


Drain = Callable[[int], Awaitable[int]]
STORES: dict[str, Callable[[Path, str], Store]] = {
    "sqlite": SqliteStore,
    "postgres": lambda _, durability: PostgresStore(durability),
    "redis": lambda _, durability: RedisStore(durability),
}
"""By the engine's name."""
