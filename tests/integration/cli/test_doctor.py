"""`tidemill doctor`."""

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import Store
from tests.servers.redis_urls import RedisUrls
from tidemill.engine.protocol import Engine
from tidemill.model import storage
from tidemill.model.ids import new_id
from tidemill.model.member import MemberInfo
from tidemill.model.storage import HolderKind
from tidemill.model.time import HOUR

PATIENCE_S = 10.0


@contextmanager
def a_reader(url: str) -> Iterator[None]:
    """Somebody who keeps a snapshot of the store."""
    if url.startswith("sqlite:"):
        reader = sqlite3.connect(Path(urlsplit(url).path), isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
        yield
        reader.close()
        return
    with asyncio.Runner() as runner:
        session: asyncpg.Connection[Any] = runner.run(asyncpg.connect(url))
        runner.run(session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1"))
        yield
        runner.run(session.close())


@pytest.mark.every_engine
def test_all_is_well(store: Store, run: Run) -> None:
    store.put(3, delay=HOUR)
    found = run("doctor", "--json").object
    assert found["warnings"] == []
    assert {part["name"] for part in found["parts"]} & {"job", "database"}
    assert found["bytes"] == sum(part["bytes"] for part in found["parts"]) > 0
    ran = run("doctor")
    assert ran.code == 0
    assert ran.err.splitlines()[-1].endswith("all is well")


@pytest.mark.every_engine
@pytest.mark.parametrize("engine_mode", ["sqlite-file", "postgres-server"], indirect=True)  # have readers
def test_a_reader_that_stays_is_a_warning_and_an_exit_code(
    store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(storage.MUCH_HELD, HolderKind.READER, 1)
    monkeypatch.setattr(storage, "LONG_HELD", 1)
    store.put(1, delay=HOUR)
    with a_reader(store.url):
        store.put(50, delay=HOUR)
        ran = run("doctor")
        assert ran.code == 1
        assert "warning: " in ran.err
        assert "from being cleared away" in ran.err
        assert "HELD BACK BY" in ran.out
        found = run("doctor", "--json")
        assert found.code == 1
        assert found.object["holders"][0]["kind"] in ("reader", "transaction")
        assert "held" in {warning["kind"] for warning in found.object["warnings"]}
    until = time.monotonic() + PATIENCE_S  # the server may show an ended reader for a moment
    while run("doctor", "--json").object["warnings"]:
        assert time.monotonic() < until


@pytest.mark.every_engine
@pytest.mark.parametrize("engine_mode", ["redis-server"], indirect=True)  # where it happens by itself
def test_lost_data_is_a_warning(store: Store, run: Run, redis_urls: RedisUrls) -> None:
    member = MemberInfo(id=new_id(), name="here:1", roles=("controller",))
    database = int(urlsplit(store.url).path.removeprefix("/"))

    async def heartbeat_again(engine: Engine) -> None:
        await engine.members.heartbeat(member)
        redis_urls.server.command("FLUSHDB", "SYNC", database=database)
        assert (await engine.members.heartbeat(member)).rolled_back

    store.do(heartbeat_again)
    ran = run("doctor")
    assert ran.code == 1
    assert "had lost acknowledged data" in ran.err
    assert [warning["kind"] for warning in run("doctor", "--json").object["warnings"]] == ["rolled back"]


def test_a_file_that_is_not_there_is_not_made(run: Run, tmp_path: Path) -> None:
    ran = run("doctor", "--url", f"sqlite:///{tmp_path}/nothing.db")
    assert ran.code == 2
    assert not (tmp_path / "nothing.db").exists()
