"""What the driver asks of a server beside our own calls."""

from collections.abc import Iterable
from typing import Any

import asyncpg
import pytest

from tests.servers.postgres_urls import PostgresUrls
from tidemill.engine.registry import connect
from tidemill.engines.postgres.db.driver import DriverConnection
from tidemill.testing.contract.fixtures import Clock, a_claimant, a_job


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The types that servers are asked about."""
    seen: list[set[int]] = []
    ask = asyncpg.Connection._introspect_types  # type: ignore[attr-defined]

    async def note(self: Any, typeoids: Iterable[int], timeout: float | None) -> Any:
        seen.append(set(typeoids))
        return await ask(self, typeoids, timeout)

    monkeypatch.setattr(asyncpg.Connection, "_introspect_types", note)
    return seen


async def work(url: str) -> None:
    engine = await connect(url)
    await engine.jobs.enqueue([a_job()])
    claimant = await a_claimant(engine, Clock())
    await claimant.complete(await claimant.take_one())
    await engine.close()


async def test_a_second_engine_asks_nothing_about_types(
    postgres_urls: PostgresUrls, asked: list[set[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.engines.postgres.db.driver._learnt", {})
    url = postgres_urls.fresh()
    await work(url)
    assert asked, "arrays are not asked about any more: then this test and the class have done their duty"
    asked.clear()
    await work(url)
    assert asked == []
    postgres_urls.release()


async def test_types_of_a_database_are_its_own(postgres_urls: PostgresUrls, asked: list[set[int]]) -> None:
    for _ in range(2):
        connection = await asyncpg.connect(postgres_urls.server.url(), connection_class=DriverConnection)
        async with connection.transaction():
            await connection.execute("CREATE TYPE pg_temp.colour AS ENUM ('red', 'blue')")
            assert await connection.fetchval("SELECT ARRAY['red', 'blue']::pg_temp.colour[]") == [
                "red",
                "blue",
            ]
        await connection.close()
    assert len(asked) == 2
