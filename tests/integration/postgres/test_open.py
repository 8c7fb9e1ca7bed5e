"""Opening a URL: made by one of many, refused if it is not ours or too new."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from tests.integration.postgres.conftest import Plain
from tests.integration.sqlite.children import child
from tests.servers.postgres import PostgresServer
from tidemill.engine.registry import connect as open_engine
from tidemill.engines.postgres.db.schema import MIGRATIONS
from tidemill.model.errors import BadUrl, EngineUnavailable, NotOurs, SchemaTooNew, SchemaTooOld
from tidemill.model.queues.queue import QueueOptions
from tidemill.testing.contract.fixtures import Clock, a_claimant, a_job, configure, created, some_jobs

Tenant = tuple["asyncpg.Connection[Any]", str]

OPENS = """
import asyncio, sys
from tidemill.engine.registry import connect
from tidemill.model.queues.queue import QueueOptions
from tidemill.testing.contract.fixtures import a_job, created

async def main(url, namespace):
    print("up")
    input()
    engine = await connect(url, namespace=namespace)
    print(created(await engine.jobs.enqueue([a_job()])))
    await engine.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_racing_processes_migrate_once(url: str, plain: Plain) -> None:
    with (
        child(OPENS, url, "raced") as one,
        child(OPENS, url, "raced") as two,
        child(OPENS, url, "raced") as three,
    ):
        racers = (one, two, three)
        assert [racer.read() for racer in racers] == ["up"] * 3
        for racer in racers:
            racer.go_on()
        assert [await asyncio.to_thread(racer.read) for racer in racers] == ["[True]"] * 3
        assert [racer.end() for racer in racers] == [0] * 3
    connection = await plain()
    assert await connection.fetchval("SELECT count(*) FROM raced.job") == 3
    await connection.execute("DROP SCHEMA raced CASCADE")


async def test_namespaces_are_kept_apart(url: str, plain: Plain) -> None:
    one, other = await open_engine(url, namespace="left"), await open_engine(url, namespace="right")
    await one.jobs.enqueue([a_job()])
    assert ([each.ready for each in await one.inspect.counts()], await other.inspect.counts()) == ([1], [])
    await one.close()
    await other.close()
    await (await plain()).execute('DROP SCHEMA "left" CASCADE; DROP SCHEMA "right" CASCADE')


async def test_somebody_elses_schema_is_refused(url: str, plain: Plain) -> None:
    connection = await plain()
    await connection.execute("CREATE SCHEMA theirs; CREATE TABLE theirs.orders (id int)")
    with pytest.raises(NotOurs, match="theirs"):
        await open_engine(url, namespace="theirs")
    await connection.execute("CREATE TABLE theirs.meta (name text, value text)")
    with pytest.raises(NotOurs, match="theirs"):
        await open_engine(url, namespace="theirs")
    assert (
        await connection.fetchval("SELECT count(*) FROM pg_class WHERE relnamespace = 'theirs'::regnamespace")
        == 2
    )
    await connection.execute("DROP SCHEMA theirs CASCADE")


@pytest.fixture
async def aged(url: str, plain: Plain) -> Any:
    """A namespace whose version a test changes."""
    engine = await open_engine(url, namespace="aged")
    await engine.close()
    connection = await plain()

    async def set_version(version: int, oldest_code: int) -> None:
        await connection.execute(
            f"UPDATE aged.meta SET value = '{version}' WHERE name = 'version'; "
            f"UPDATE aged.meta SET value = '{oldest_code}' WHERE name = 'oldest_code'"
        )

    yield set_version
    await connection.execute("DROP SCHEMA aged CASCADE")


async def test_a_newer_schema_is_refused_only_if_it_says_so(url: str, aged: Any) -> None:
    code = MIGRATIONS[-1].version
    await aged(code + 1, code)
    await (await open_engine(url, namespace="aged")).close()
    await aged(code + 2, code + 1)
    with pytest.raises(SchemaTooNew, match=str(code + 2)):
        await open_engine(url, namespace="aged")


async def test_nothing_is_migrated_where_that_is_not_allowed(url: str, plain: Plain) -> None:
    with pytest.raises(SchemaTooOld, match="tidemill migrate"):
        await open_engine(url, namespace="absent", migrate=False)
    assert await (await plain()).fetchval("SELECT to_regnamespace('absent')") is None


@pytest.mark.parametrize(
    "wrong",
    ["?colour=blue", "?durability=some", "?call_timeout=never", "?prepared=maybe", "?listen=1", "/deeper"],
)
async def test_a_url_that_cannot_be_meant(url: str, wrong: str) -> None:
    with pytest.raises(BadUrl):
        await open_engine(url + wrong)


async def test_a_socket_file(own_server: PostgresServer) -> None:
    url = f"postgresql://tidemill@/postgres?host={own_server.folder}&port={own_server.port}"
    engine = await open_engine(url)
    assert created(await engine.jobs.enqueue([a_job()])) == [True]
    await engine.close()


@pytest.mark.parametrize("options", ["?prepared=no&listen=no", "?durability=off"])
async def test_options_for_poolers_and_speed(url: str, options: str) -> None:
    engine = await open_engine(url + options)
    subscription = await engine.signals.subscribe("news")
    for _ in range(2):
        assert created(await engine.jobs.enqueue([a_job()])) == [True]
    signal = await subscription.next(1.5)
    assert (signal is not None) is ("listen=no" in options)
    await engine.close()


@pytest.fixture
async def tenant(url: str, plain: Plain) -> AsyncIterator[Tenant]:
    """A role that may do nothing, and somebody who may change that."""
    admin = await plain()
    await admin.execute("CREATE ROLE tenant LOGIN")
    yield admin, url.replace("tidemill@", "tenant@")
    await admin.execute("DROP SCHEMA IF EXISTS tenant CASCADE; DROP OWNED BY tenant; DROP ROLE tenant")


async def opens(tenant: Tenant) -> None:
    """And everything can be done there."""
    engine = await open_engine(tenant[1], namespace="tenant")
    assert created(await engine.jobs.enqueue(some_jobs(2))) == [True] * 2
    claimant = await a_claimant(engine, Clock(await engine.now()))
    first, second = await claimant.take(most=2)
    await claimant.complete(first)
    await claimant.release(second)
    await configure(engine, "q", QueueOptions(concurrency=1))
    await engine.jobs.cancel([second.id])
    await engine.jobs.promote()
    await engine.jobs.prune()
    await engine.members.leave(claimant.member.id)
    await engine.close()


async def test_a_role_that_owns_only_its_schema(tenant: Tenant) -> None:
    """No superuser is needed, and no right on the database beside its own schema."""
    await tenant[0].execute("CREATE SCHEMA tenant AUTHORIZATION tenant")
    await opens(tenant)


async def granted(tenant: Tenant, said: str, statement: str) -> None:
    """Run a statement of an error's advice; `said` is how it stands there."""
    admin, url = tenant
    with pytest.raises(BadUrl) as raised:
        await open_engine(url, namespace="tenant")
    assert said in str(raised.value)
    await admin.execute(statement)


async def test_without_a_schema_it_is_told_how_to_get_one(tenant: Tenant) -> None:
    database = await tenant[0].fetchval("SELECT current_database()")
    statement = f'GRANT CREATE ON DATABASE "{database}" TO "tenant"'
    await granted(tenant, statement, statement)
    await opens(tenant)
    await tenant[0].execute(f"DROP SCHEMA tenant CASCADE; REVOKE CREATE ON DATABASE {database} FROM tenant")
    statement = 'CREATE SCHEMA "tenant" AUTHORIZATION "tenant"'
    await granted(tenant, statement, statement)
    await opens(tenant)


async def test_in_the_schema_of_another_role_it_is_told_what_is_missing(tenant: Tenant, url: str) -> None:
    admin = tenant[0]
    await admin.execute("CREATE SCHEMA tenant; GRANT USAGE ON SCHEMA tenant TO tenant")
    statement = 'GRANT CREATE ON SCHEMA "tenant" TO "tenant"'
    await granted(tenant, statement, "SELECT 1")
    await (await open_engine(url, namespace="tenant")).close()
    await admin.execute("REVOKE USAGE ON SCHEMA tenant FROM tenant")
    statement = 'GRANT USAGE ON SCHEMA "tenant" TO "tenant"'
    await granted(tenant, statement, f"{statement}; GRANT CREATE ON SCHEMA tenant TO tenant")
    tables = 'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "tenant"'
    await granted(
        tenant,
        tables,
        f'{tables} TO tenant; GRANT ALL ON ALL SEQUENCES IN SCHEMA "tenant" TO tenant',
    )
    await opens(tenant)


async def test_a_database_that_may_not_be_entered(tenant: Tenant) -> None:
    admin, url = tenant
    database = await admin.fetchval("SELECT current_database()")
    await admin.execute(f"REVOKE CONNECT ON DATABASE {database} FROM PUBLIC")
    with pytest.raises(BadUrl, match="GRANT CONNECT ON DATABASE"):
        await open_engine(url, namespace="tenant")
    await admin.execute(f"GRANT CONNECT ON DATABASE {database} TO PUBLIC")


async def test_who_waits_for_a_migration_says_so(url: str, plain: Plain) -> None:
    other = await plain()
    async with other.transaction():
        await other.execute("SELECT pg_advisory_xact_lock(hashtextextended('tidemill migration of slow', 0))")
        with pytest.raises(EngineUnavailable, match="another process is migrating slow"):
            await open_engine(url + "?call_timeout=1", namespace="slow")
    await (await open_engine(url, namespace="slow")).close()
    await other.execute("DROP SCHEMA slow CASCADE")


async def test_a_database_with_another_isolation_is_refused(url: str, plain: Plain) -> None:
    connection: asyncpg.Connection[Any] = await plain()
    await connection.execute(
        "CREATE ROLE strict LOGIN SUPERUSER; "
        "ALTER ROLE strict SET default_transaction_isolation = 'serializable'"
    )
    with pytest.raises(BadUrl, match="read committed"):
        await open_engine(url.replace("tidemill@", "strict@"))
    await connection.execute("DROP ROLE strict")
