"""A password is in the URL and nowhere else: not in a log, an error, a listing, or what `ps` shows."""

import asyncio
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from rich.console import Console

from tests.integration.postgres.conftest import Servers
from tests.integration.supervisor.groups import APP, ROOT
from tests.integration.supervisor.processes import children_of, until
from tests.programs import running
from tests.servers.postgres import PostgresServer
from tidemill import Tidemill
from tidemill.cli.options.where import find
from tidemill.engine.registry import connect as open_engine
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.model.errors import BadUrl, EngineError, EngineUnavailable, TidemillError
from tidemill.worker.config import WorkerConfig
from tidemill.worker.member.messages import Hello
from tidemill.worker.runner.messages import Open

SECRET = "hu5h-hu5h"
HBA = """
host all tidemill all trust
host all shop     all scram-sha-256
"""


@pytest.fixture
async def guarded(servers: Servers) -> tuple[PostgresServer, str]:
    """A server that wants a password, and the URL that has it."""
    server = servers(hba=HBA)
    connection: asyncpg.Connection[Any] = await asyncpg.connect(server.url())
    await connection.execute(
        f"CREATE ROLE shop LOGIN PASSWORD '{SECRET}'; CREATE SCHEMA tidemill AUTHORIZATION shop"
    )
    await connection.close()
    return server, server.url().replace("tidemill@", f"shop:{SECRET}@")


async def test_it_is_in_no_error_and_no_repr(guarded: tuple[PostgresServer, str]) -> None:
    server, url = guarded
    errors: list[TidemillError] = []

    async def fails(wrong: str) -> None:
        with pytest.raises(TidemillError) as raised:
            await open_engine(wrong)
        errors.append(raised.value)

    engine = await open_engine(url)
    assert isinstance(engine, PostgresEngine)
    config = WorkerConfig(url=url)
    shown: list[object] = [
        engine.name, engine, vars(engine), vars(engine.store), engine.store.url, vars(engine.store.pubsub),
        config, Hello(member="", claimant="", config=config, capacity=1, takes_suspects=False),
        Open("app", "text", url), Tidemill(url), vars(Tidemill(url)), find(url=url), find(url=url).settings,
    ]  # fmt: skip
    await fails(url.replace(SECRET, f"not-{SECRET}"))
    await fails(url.replace("/postgres", "/nothing"))
    await fails(url + "?sslmode=require")
    await fails(url + "?colour=blue")
    server.kill()
    with pytest.raises(EngineUnavailable) as raised:
        await engine.inspect.counts()
    errors.append(raised.value)
    await fails(url)
    await engine.close()
    assert isinstance(errors[0], BadUrl)
    assert "password authentication failed" in str(errors[0])
    console = Console(width=10_000)
    with console.capture() as printed:
        for each in shown:
            console.print(each)
    said = [*map(repr, shown), printed.get(), *("".join(traceback.format_exception(each)) for each in errors)]
    assert not [text for text in said if SECRET in text]


@pytest.fixture
def worker(guarded: tuple[PostgresServer, str], tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """`tidemill worker`, told its URL on the command line."""
    command = (sys.executable, "-m", "tidemill", "worker", APP, "-p", "2", "--url", guarded[1])
    with open(tmp_path / "log", "wb") as log, running(command, cwd=ROOT, stderr=log) as process:
        yield process
        process.kill()


async def test_it_is_in_no_log_listing_or_process(
    guarded: tuple[PostgresServer, str], worker: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    """Of a worker with its children, through an outage, and of those who look at it."""
    server, url = guarded
    log = tmp_path / "log"
    seen: set[str] = set()

    def at_work() -> bool:
        for pid in descendants(worker.pid):
            with suppress(FileNotFoundError, ProcessLookupError):
                seen.add(arguments_of(pid))
        return log.read_text().count("is ready") >= 2

    await until(at_work)
    seen.discard(arguments_of(worker.pid))  # of a child that was just being made
    assert len(seen) >= 2, "the one that worked out the configuration, and those that work"
    await asyncio.to_thread(server.kill)
    await until(lambda: "heartbeat failed" in log.read_text())
    await asyncio.to_thread(server.start)
    await until(lambda: "answers again" in log.read_text())
    commands = (("config", "show"), ("config", "show", "--json"), ("members", "--json"), ("stats",))
    listings = [await asyncio.to_thread(tidemill, url, *command) for command in commands]
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(worker.wait, 30) == 0
    assert [listing.returncode for listing in listings] == [0] * 4
    assert "shop:***@127.0.0.1" in listings[0].stdout
    said = [*seen, log.read_text(), *(listing.stdout + listing.stderr for listing in listings)]
    assert not [text for text in said if SECRET in text]


def tidemill(url: str, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        (sys.executable, "-m", "tidemill", *command),
        env={**os.environ, "TIDEMILL_URL": url},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def arguments_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def descendants(pid: int) -> list[int]:
    found = children_of(pid)
    for child in found:
        with suppress(FileNotFoundError, ProcessLookupError):
            found += children_of(child)
    return found


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("tidemill@127.0.0.1", "nobody:s3cret@127.0.0.1"), BadUrl),
        (("/postgres", "/nothing"), BadUrl),
        (("127.0.0.1:", "127.0.0.2:"), EngineError),
    ],
    ids=["user", "database", "host"],
)
async def test_a_wrong_url_is_refused_without_the_password(
    own_server: PostgresServer, change: tuple[str, str], error: type[Exception]
) -> None:
    url = own_server.url().replace("tidemill@", "tidemill:s3cret@").replace("tidemill:s3cret", "tidemill")
    with pytest.raises(error) as raised:
        await open_engine(url.replace(*change))
    assert "s3cret" not in "".join(map(str, _chain(raised.value)))


async def test_a_password_is_never_shown(own_server: PostgresServer) -> None:
    url = own_server.url().replace("tidemill@", "tidemill:s3cret@")
    engine = await open_engine(url)
    assert isinstance(engine, PostgresEngine)
    shown = [engine.name, repr(engine), repr(vars(engine)), repr(engine.store.url), str(engine.store.url)]
    own_server.kill()
    with pytest.raises(EngineUnavailable) as raised:
        await engine.inspect.counts()
    await engine.close()
    assert "s3cret" not in "".join([*shown, *map(str, _chain(raised.value))])


def _chain(error: BaseException | None) -> list[BaseException]:
    found = []
    while error is not None:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
