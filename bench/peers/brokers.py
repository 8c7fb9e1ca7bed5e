"""Private stores and brokers for peers, one for each contender, so that processor time has one owner."""

import re
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tests.servers.postgres import PostgresServer, program
from tests.servers.redis import RedisServer
from tidemill.cli.bench.workers import cpu_s_of


class Broker(Protocol):
    """Where one contender keeps its jobs."""

    version: str
    url: str
    """For Tidemill."""
    place: str
    """For peers."""

    def cpu_s(self) -> float:
        """Processor time of its own processes so far."""

    def close(self) -> None: ...


class SqliteFile:
    """A file in a folder. It has no process."""

    version = f"SQLite {sqlite3.sqlite_version}"

    def __init__(self, folder: Path) -> None:
        self.place = str(folder / "jobs.db")
        self.url = f"sqlite:///{self.place}"

    def cpu_s(self) -> float:
        return 0.0

    def close(self) -> None:
        pass


class Postgres:
    """A server with stock settings."""

    def __init__(self, folder: Path) -> None:
        said = subprocess.run([program("postgres"), "--version"], capture_output=True, text=True, check=True)
        self.version = f"PostgreSQL {first_number(said.stdout)}"
        self._server = PostgresServer(durable=True).start()
        self.url = self.place = self._server.url()

    def cpu_s(self) -> float:
        pids = self._server.pids()
        return cpu_s_of(pids[0], with_ended_children=True) + sum(map(cpu_s_of, pids[1:]))

    def close(self) -> None:
        self._server.close()


class Redis:
    """A server that appends to its file and syncs it every second."""

    def __init__(self, folder: Path) -> None:
        self._server = RedisServer(settings={"appendonly": "yes", "appendfsync": "everysec"}).start()
        said = self._server.command("INFO", "server").decode()
        self._pid = int(info(said, "process_id"))
        self.version = f"Redis {info(said, 'redis_version')}"
        self.url = self.place = self._server.url()

    def cpu_s(self) -> float:
        return cpu_s_of(self._pid, with_ended_children=True)

    def close(self) -> None:
        self._server.close()


def first_number(said: str) -> str:
    """The first version number in what a program says of itself."""
    found = re.search(r"\d+(\.\d+)+", said)
    return found[0] if found else said.strip()


def info(said: str, name: str) -> str:
    """One line of Redis's INFO."""
    found = re.search(rf"^{name}:(.*?)\r?$", said, re.MULTILINE)
    if found is None:
        raise ValueError(f"Redis did not say its {name}")
    return found[1]


def _rabbitmq(folder: Path) -> Broker:
    from bench.peers.rabbitmq import RabbitMQ  # only where it is asked for

    return RabbitMQ(folder)


BROKERS: dict[str, Callable[[Path], Broker]] = {
    "sqlite": SqliteFile,
    "postgres": Postgres,
    "redis": Redis,
    "rabbitmq": _rabbitmq,
}
