"""What is not a transaction, or not one that can be joined, is refused with what to do instead."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import psycopg_pool
import pytest
import sqlalchemy
from sqlalchemy import orm
from sqlalchemy.ext import asyncio as sqlalchemy_asyncio

from tests.integration.transactions.blocking import Django, sqlalchemy_url
from tests.integration.transactions.sqlite_path import path_of
from tidemill import NoTransaction, SyncInLoop, Task, Tidemill, UnknownJob

on_postgres = pytest.mark.parametrize("engine_mode", ["postgres-server"])
on_sqlite = pytest.mark.parametrize("engine_mode", ["sqlite-file"])
on_both = pytest.mark.parametrize("engine_mode", ["sqlite-file", "postgres-server"])


@pytest.fixture
def ping(app: Tidemill) -> Task[[], None]:
    @app.task
    def ping() -> None: ...

    with pytest.raises(UnknownJob):
        app.job(b"x".hex() * 16).info()
    return ping


def refused(ping: Task[[], None], connection: object, why: str) -> None:
    with pytest.raises(NoTransaction, match=why):
        ping.using(transaction=connection).enqueue()


@on_sqlite
def test_sqlite3_in_autocommit(ping: Task[[], None], url: str) -> None:
    connection = sqlite3.connect(path_of(url), isolation_level=None)
    refused(ping, connection, "stands at once.*BEGIN IMMEDIATE")
    refused(ping, connection.cursor(), "pass the connection, not its cursor")
    connection.close()


@on_postgres
def test_psycopg_in_autocommit(ping: Task[[], None], url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        refused(ping, connection, r"stands at once.*`with connection.transaction\(\):`")
        with connection.transaction():
            job = ping.using(transaction=connection).enqueue()
        assert job.info().task == ping.name
        refused(ping, connection.cursor(), "not its cursor")


@on_both
def test_sqlalchemy_in_autocommit_and_its_engines(ping: Task[[], None], url: str) -> None:
    engine = sqlalchemy.create_engine(sqlalchemy_url(url), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        refused(ping, connection, 'stands at once.*isolation_level is not "AUTOCOMMIT"')
    with orm.Session(engine) as session:
        refused(ping, session, "AUTOCOMMIT")
    refused(ping, engine, r"`with engine.begin\(\) as connection:`")
    refused(ping, orm.sessionmaker(engine), r"`with maker.begin\(\) as session:`")
    engine.dispose()


@on_both
def test_django_outside_of_atomic(ping: Task[[], None], url: str) -> None:
    way = Django(url)
    refused(ping, way.connection, r"stands at once.*`with transaction.atomic\(\):`")
    way.close()


@on_postgres
def test_pools_and_strangers(ping: Task[[], None], url: str) -> None:
    with psycopg_pool.ConnectionPool(url, min_size=1, open=True) as pool:
        refused(ping, pool, "a pool is not a transaction")
    refused(ping, object(), "transaction= takes a connection of sqlite3.*not builtins.object")
    refused(ping, url, "not builtins.str")


@on_both
def test_an_async_connection_in_blocking_code(ping: Task[[], None], url: str, engine_mode: str) -> None:
    async def opened() -> Any:
        if engine_mode == "sqlite-file":
            return await aiosqlite.connect(path_of(url))
        return await psycopg.AsyncConnection.connect(url)

    with asyncio.Runner() as runner:
        connection = runner.run(opened())
        refused(ping, connection, r"is an async connection.*`await aenqueue\(...\)`")
        runner.run(connection.close())


@on_both
async def test_a_blocking_call_on_a_loop(app: Tidemill, url: str, engine_mode: str) -> None:
    @app.task
    def ping() -> None: ...

    with pytest.raises(SyncInLoop, match="aenqueue"):
        ping.using(transaction=object()).enqueue()
    await app.aclose()


async def arefused(ping: Task[[], None], connection: object, why: str) -> None:
    with pytest.raises(NoTransaction, match=why):
        await ping.using(transaction=connection).aenqueue()


@contextlib.asynccontextmanager
async def closing(app: Tidemill) -> AsyncIterator[Task[[], None]]:
    @app.task
    def ping() -> None: ...

    yield ping
    await app.aclose()


@on_postgres
async def test_async_ones_in_autocommit(app: Tidemill, url: str) -> None:
    async with closing(app) as ping:
        plain = await asyncpg.connect(url)
        await arefused(ping, plain, r"stands at once.*`async with connection.transaction\(\):`")
        await plain.close()
        async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool:
            await arefused(ping, pool, "a pool is not a transaction")
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await arefused(ping, connection, r"`async with connection.transaction\(\):`")
        for driver in ("psycopg", "asyncpg"):
            engine = sqlalchemy_asyncio.create_async_engine(
                url.replace("postgresql", f"postgresql+{driver}"), isolation_level="AUTOCOMMIT"
            )
            async with engine.connect() as connection:
                await arefused(ping, connection, "AUTOCOMMIT")
            await arefused(ping, engine, r"`async with engine.begin\(\) as connection:`")
            await engine.dispose()


@on_sqlite
async def test_aiosqlite_in_autocommit(app: Tidemill, url: str) -> None:
    async with closing(app) as ping:
        async with aiosqlite.connect(path_of(url), isolation_level=None) as connection:
            await arefused(ping, connection, "stands at once")
        engine = sqlalchemy_asyncio.create_async_engine(
            f"sqlite+aiosqlite:///{path_of(url)}", isolation_level="AUTOCOMMIT"
        )
        async with engine.connect() as connection:
            await arefused(ping, connection, "AUTOCOMMIT")
        await engine.dispose()
