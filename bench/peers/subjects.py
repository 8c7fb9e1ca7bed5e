"""Peers as subjects of comparisons. (A module named as a package here would hide it from its own program.)"""

import asyncio
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.peers.catalogue import PEERS
from bench.race import race
from bench.rounds import Subject, Turn
from bench.stores import PostgresStore

_HERE = Path(__file__).parent


def huey(folder: Path, errand: str, jobs: int, durability: str) -> Subject:
    """A turn of `enqueue` or `drain`. `PeerMissing` if it cannot be had here."""
    python = PEERS["huey-sqlite"].home / "python"
    command = [str(python), str(_HERE / "huey_sqlite.py"), errand, str(folder), str(jobs), durability]

    async def turn() -> Turn:
        found = json.loads(await _run(command))
        return Turn(found["jobs_s"], found["cpu_us"])

    return turn


async def pgqueuer(store: PostgresStore) -> "Peer":
    """PgQueuer in a database of its own."""
    python = await asyncio.to_thread(lambda: PEERS["pgqueuer"].home / "python")
    return await Peer.install(store, "pgqueuer", (str(python), str(_HERE / "pgqueuer_postgres.py")))


async def graphile(store: PostgresStore) -> "Peer":
    """Graphile Worker in a database of its own."""
    folder = await asyncio.to_thread(lambda: PEERS["graphile"].home)
    return await Peer.install(store, "graphile", ("node", str(_HERE / "graphile_worker.cjs")), folder)


class Peer:
    """A program that knows the errands `install`, `enqueue` and `work`."""

    def __init__(self, store: PostgresStore, url: str, program: Sequence[str], folder: Path | None) -> None:
        self._store, self._url, self._program, self._folder = store, url, program, folder

    @classmethod
    async def install(
        cls, store: PostgresStore, name: str, program: Sequence[str], folder: Path | None = None
    ) -> "Peer":
        peer = cls(store, store.raw_place(name), program, folder)
        await _run([*program, "install", peer._url], folder)
        return peer

    def fill(self, jobs: int) -> Subject:
        """Bulk enqueue, by one process."""

        async def turn() -> Turn:
            turn = await self._enqueue(jobs)
            await self._work(jobs, 1)
            return turn

        return turn

    def drain(self, jobs: int, processes: int) -> Subject:
        """No-op jobs, by so many worker processes."""

        async def turn() -> Turn:
            await self._enqueue(jobs)
            return await self._work(jobs, processes)

        return turn

    async def _enqueue(self, jobs: int) -> Turn:
        cpu_s = self._store.cpu_s()
        found = json.loads(await _run([*self._program, "enqueue", self._url, str(jobs)], self._folder))
        cpu_s = self._store.cpu_s() - cpu_s + found["cpu_s"]
        return Turn(jobs / (found["ended"] - found["began"]), 1e6 * cpu_s / jobs)

    async def _work(self, jobs: int, processes: int) -> Turn:
        command = [*self._program, "work", self._url]
        turn, _ = await race(command, processes, jobs, self._store.cpu_s, self._folder)
        return turn


async def _run(command: Sequence[str], folder: Path | None = None) -> str:
    run = await asyncio.to_thread(
        subprocess.run, command, cwd=folder, capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise RuntimeError(f"{Path(command[1]).stem}: {run.stderr}")
    return str(run.stdout)
