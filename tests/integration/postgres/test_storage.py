"""Who holds back the horizon, and what piles up meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from tests.integration.postgres.conftest import Plain
from tests.servers.fixtures import server_or_skip
from tests.servers.postgres import PostgresServer
from tidemill.engine.registry import connect as open_engine
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.model.storage import HolderKind, Part, Storage, StorageHolder, warnings_of
from tidemill.model.time import HOUR
from tidemill.testing.contract.fixtures import Claimant, Clock, some_jobs


def of_session(storage: Storage, connection: "asyncpg.Connection[Any]") -> StorageHolder | None:
    pid = str(connection.get_server_pid())
    return next((holder for holder in storage.holders if holder.name == pid), None)


def part(storage: Storage, name: str) -> Part:
    return next(part for part in storage.parts if part.name == name)


async def test_a_reader_that_keeps_its_snapshot_is_named(engine: PostgresEngine, plain: Plain) -> None:
    reader = await plain()
    await reader.execute("SET application_name = 'reports'")
    async with reader.transaction(isolation="repeatable_read", readonly=True):
        await reader.fetch("SELECT count(*) FROM tidemill.job")
        holder = of_session(await engine.inspect.storage(), reader)
    assert holder is not None
    assert (holder.kind, holder.application, holder.state) == (
        HolderKind.TRANSACTION,
        "reports",
        "idle in transaction",
    )
    assert holder.age is not None
    assert holder.age > 0
    assert of_session(await engine.inspect.storage(), reader) is None


async def test_an_idle_writer_is_named(engine: PostgresEngine, plain: Plain) -> None:
    writer = await plain()
    async with writer.transaction():
        await writer.execute("SELECT pg_current_xact_id()")
        holder = of_session(await engine.inspect.storage(), writer)
    assert holder is not None
    assert (holder.kind, holder.state) == (HolderKind.TRANSACTION, "idle in transaction")


async def test_the_oldest_comes_first_and_an_idle_session_not_at_all(
    engine: PostgresEngine, plain: Plain
) -> None:
    first, second, idle = await plain(), await plain(), await plain()
    await idle.fetch("SELECT 1")
    async with first.transaction(), second.transaction():
        for writer in (first, second):
            await writer.execute("SELECT pg_current_xact_id()")
        found = await engine.inspect.storage()
    names = [holder.name for holder in found.holders]
    order = [names.index(str(writer.get_server_pid())) for writer in (first, second)]
    assert order == sorted(order)
    assert str(idle.get_server_pid()) not in names


async def test_dead_rows_and_sizes_are_those_of_our_tables(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, plain: Plain
) -> None:
    reader = await plain()
    async with reader.transaction(isolation="repeatable_read", readonly=True):
        await reader.fetch("SELECT count(*) FROM tidemill.job")
        await engine.jobs.enqueue(some_jobs(500), now=clock.now)
        await claimant.complete(*await claimant.take(most=500))
        async with asyncio.timeout(30):  # sessions report what they did within seconds
            while (part(await engine.inspect.storage(), "job").dead or 0) < 1_000:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
    job = part(await engine.inspect.storage(), "job")
    assert job.bytes > 100_000
    assert "pg_class" not in {found.name for found in (await engine.inspect.storage()).parts}


@pytest.fixture
async def other_server(engine_mode: str) -> AsyncIterator[PostgresServer]:
    """With everything that can hold back."""
    server = server_or_skip(settings={"max_prepared_transactions": "2", "autovacuum": "off"})
    yield server
    server.close()


async def test_prepared_transactions_slots_and_a_server_that_does_not_clear(
    other_server: PostgresServer,
) -> None:
    engine = await open_engine(other_server.url())
    user: asyncpg.Connection[Any] = await asyncpg.connect(other_server.url())
    try:
        await user.execute("CREATE TABLE mine (n int); BEGIN; INSERT INTO mine VALUES (1)")
        await user.execute("PREPARE TRANSACTION 'forgotten'")
        await user.execute("SELECT pg_create_physical_replication_slot('standby', true)")
        found = await engine.inspect.storage()
        holders = {holder.name: holder for holder in found.holders}
        assert holders["forgotten"].kind is HolderKind.PREPARED
        assert holders["forgotten"].user == "tidemill"
        slot = holders["standby"]
        assert (slot.kind, slot.state) == (HolderKind.SLOT, "not in use")
        assert slot.bytes is not None
        assert slot.bytes >= 0
        assert [warning.kind for warning in warnings_of(found)] == ["off"]
        await user.execute("ROLLBACK PREPARED 'forgotten'")
        assert "forgotten" not in {holder.name for holder in (await engine.inspect.storage()).holders}
    finally:
        await user.close()
        await engine.close()


async def test_a_role_without_rights_still_sees_who_holds_back(
    other_server: PostgresServer,
) -> None:
    """State and age of others' sessions are hidden from it; that they hold back, and how far, is not."""
    owner: asyncpg.Connection[Any] = await asyncpg.connect(other_server.url())
    try:
        await owner.execute("CREATE ROLE app LOGIN; CREATE SCHEMA shop AUTHORIZATION app")
        engine = await open_engine(other_server.url().replace("tidemill@", "app@"), namespace="shop")
        try:
            async with owner.transaction():
                await owner.execute("SELECT pg_current_xact_id()")
                holder = of_session(await engine.inspect.storage(), owner)
            assert holder is not None
            assert (holder.age, holder.state, holder.user) == (None, "", "tidemill")
            assert holder.behind is not None
        finally:
            await engine.close()
    finally:
        await owner.close()


async def test_a_long_transaction_becomes_a_warning(engine: PostgresEngine, plain: Plain) -> None:
    writer = await plain()
    async with writer.transaction():
        await writer.execute("SELECT pg_current_xact_id()")
        found = await engine.inspect.storage()
        aged = [
            StorageHolder(kind=holder.kind, name=holder.name, age=HOUR, state=holder.state)
            for holder in found.holders
            if holder.name == str(writer.get_server_pid())
        ]
        (warning,) = warnings_of(Storage(bytes=0, parts=[], holders=aged))
    assert f"process {writer.get_server_pid()}" in warning.text
