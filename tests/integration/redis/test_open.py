"""Opening a URL: refused if it would lose jobs, is not ours or too new."""

import pytest

from tests.integration.redis.conftest import Command
from tests.servers.redis import RedisServer
from tidemill.engine.registry import connect as open_engine
from tidemill.engines.redis.db.schema import VERSION
from tidemill.model.errors import BadUrl, EngineError, NotOurs, SchemaTooNew, SchemaTooOld
from tidemill.testing.contract.fixtures import a_job, created


async def test_namespaces_are_kept_apart(url: str) -> None:
    one, other = await open_engine(url, namespace="left"), await open_engine(url, namespace="right")
    subscription = await other.signals.subscribe("ready:q")
    await one.jobs.enqueue([a_job()])
    assert ([each.ready for each in await one.inspect.counts()], await other.inspect.counts()) == ([1], [])
    assert await subscription.next(0.1) is None
    await one.close()
    await other.close()


async def test_every_key_begins_with_the_tagged_prefix(url: str, command: Command) -> None:
    """So that a namespace lives in one slot of a cluster."""
    engine = await open_engine(url, namespace="tagged")
    await engine.jobs.enqueue([a_job()])
    await engine.close()
    lines = command("KEYS", "*").split(b"\r\n")
    names = [name for sign, name in zip(lines[1::2], lines[2::2], strict=False) if sign.startswith(b"$")]
    assert len(names) > 5
    assert [name for name in names if not name.startswith(b"{tagged}:")] == []


async def test_somebody_elses_keys_are_refused(url: str, command: Command) -> None:
    command("SET", "{theirs}:meta", "1")
    with pytest.raises(NotOurs, match="theirs"):
        await open_engine(url, namespace="theirs")
    command("HSET", "{others}:meta", "app", "something")
    with pytest.raises(NotOurs, match="others"):
        await open_engine(url, namespace="others")


async def test_a_newer_layout_is_refused_only_if_it_says_so(url: str, command: Command) -> None:
    await (await open_engine(url)).close()
    command("HSET", "{tidemill}:meta", "version", str(VERSION + 1))
    await (await open_engine(url)).close()
    command("HSET", "{tidemill}:meta", "version", str(VERSION + 2), "oldest_code", str(VERSION + 1))
    with pytest.raises(SchemaTooNew, match=str(VERSION + 2)):
        await open_engine(url)


async def test_nothing_is_made_where_that_is_not_allowed(url: str, command: Command) -> None:
    with pytest.raises(SchemaTooOld, match="tidemill migrate"):
        await open_engine(url, namespace="absent", migrate=False)
    assert command("DBSIZE") == b":0\r\n"


@pytest.mark.parametrize(
    "own_server",
    [{"maxmemory": "50mb", "maxmemory-policy": policy} for policy in ("allkeys-lru", "allkeys-random")],
    indirect=True,
)
async def test_a_server_that_evicts_is_refused(own_server: RedisServer) -> None:
    with pytest.raises(BadUrl, match="noeviction"):
        await open_engine(own_server.url())
    own_server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
    await (await open_engine(own_server.url())).close()


@pytest.mark.parametrize(
    "wrong", ["?colour=blue", "?call_timeout=never", "?ssl_cert_reqs=none", "x", "/1", "?db=1x", "000000000"]
)
async def test_a_url_that_cannot_be_meant(url: str, wrong: str) -> None:
    with pytest.raises(BadUrl):
        await open_engine(url.rstrip("0123456789") + wrong if wrong.startswith("?db") else url + wrong)


async def test_a_unix_socket(own_server: RedisServer) -> None:
    socket = own_server.folder / "redis.sock"
    own_server.stop()
    own_server.settings["unixsocket"] = str(socket)
    own_server.start()
    engine = await open_engine(f"redis+unix://{socket}?db=3")
    assert engine.name == f"redis+unix://{socket}?db=3"
    assert created(await engine.jobs.enqueue([a_job()])) == [True]
    await engine.close()
    assert own_server.command("EXISTS", "{tidemill}:job", database=3) == b":1\r\n"


async def test_a_database_that_is_not_there(own_server: RedisServer) -> None:
    with pytest.raises(BadUrl, match="no logical database"):
        await open_engine(own_server.url(9_999))


@pytest.mark.parametrize("own_server", [{"requirepass": "s3cret"}], indirect=True)
async def test_a_password_is_asked_for_and_never_shown(own_server: RedisServer) -> None:
    for user in ("", ":wr0ng@", "nobody:wr0ng@"):
        with pytest.raises(BadUrl) as raised:
            await open_engine(own_server.url(user=user))
        assert "wr0ng" not in "".join(map(str, _chain(raised.value)))
    engine = await open_engine(own_server.url(user=":s3cret@"))
    where = engine.store.url  # type: ignore[attr-defined]
    shown = [engine.name, repr(engine), repr(vars(engine)), repr(where), str(where)]
    own_server.kill()
    with pytest.raises(EngineError) as lost:
        await engine.inspect.counts()
    await engine.close()
    assert "s3cret" not in "".join([*shown, *map(str, _chain(lost.value))])


def _chain(error: BaseException | None) -> list[BaseException]:
    found = []
    while error is not None:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
