"""The tests' own session pooler: a client finds a backend as new, and takes it along if it vanishes."""

from collections.abc import Iterator

import asyncpg
import pytest

from tests.servers.postgres_urls import PostgresUrls


@pytest.fixture
def kept_url(postgres_urls: PostgresUrls) -> Iterator[str]:
    yield postgres_urls.fresh_kept()
    postgres_urls.release()


async def test_the_next_client_gets_the_same_backend_as_new(kept_url: str) -> None:
    own = {"application_name": "test_kept_backends"}  # no other test has left such a backend
    first = await asyncpg.connect(kept_url, server_settings=own)
    pid = await first.fetchval("SELECT pg_backend_pid()")
    assert pid == first.get_server_pid()
    await first.execute("SET statement_timeout = 1234")
    await first.execute("CREATE TEMP TABLE mine (n int)")
    await first.fetchval("SELECT pg_advisory_lock(7)")
    await first.close()
    second = await asyncpg.connect(kept_url, server_settings=own)
    assert second.get_server_pid() == pid
    assert await second.fetchval("SHOW statement_timeout") == "0"
    assert await second.fetchval("SELECT to_regclass('mine')") is None
    assert await second.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0
    await second.close()


@pytest.mark.parametrize("how", ["vanishes", "leaves in a transaction"])
async def test_a_client_that_does_not_end_in_order_takes_its_backend_along(kept_url: str, how: str) -> None:
    first = await asyncpg.connect(kept_url)
    pid = first.get_server_pid()
    await first.execute("BEGIN")
    if how == "vanishes":
        first.terminate()
    else:
        await first.close()
    second = await asyncpg.connect(kept_url)
    assert second.get_server_pid() != pid
    await second.close()


async def test_other_settings_mean_another_backend(kept_url: str) -> None:
    first = await asyncpg.connect(kept_url, server_settings={"application_name": "one"})
    pid = first.get_server_pid()
    await first.close()
    second = await asyncpg.connect(kept_url, server_settings={"application_name": "two"})
    assert second.get_server_pid() != pid
    assert await second.fetchval("SHOW application_name") == "two"
    await second.close()
