"""Connections by TLS, with certificates of our own making."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.integration.outages import until_it_works
from tests.integration.postgres.conftest import Connect, Servers
from tests.servers.certificates import Authority
from tests.servers.fixtures import or_skip, server_or_skip
from tests.servers.postgres import PostgresServer
from tidemill.engine.registry import connect as open_engine
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.model.errors import BadUrl, EngineUnavailable
from tidemill.testing.contract.fixtures import a_job, created

HBA = """
hostssl   all certified all cert
hostssl   all tidemill  all trust
hostnossl all tidemill  all trust
hostssl   all hidden    all trust
"""
SETTINGS = {
    "ssl": "on",
    "ssl_cert_file": "../server.crt",
    "ssl_key_file": "../server.key",
    "ssl_ca_file": "../authority.crt",
}


class Secured(NamedTuple):
    """A server that speaks TLS, and who vouches for it."""

    server: PostgresServer
    authority: Authority

    def url(self, options: str, *, user: str = "tidemill", host: str = "127.0.0.1") -> str:
        return f"postgresql://{user}@{host}:{self.server.port}/postgres?{options}"

    @property
    def root(self) -> str:
        return f"sslrootcert={self.authority.pair.cert}"


@pytest.fixture(scope="module")
def secured() -> Iterator[Secured]:
    """Its certificate is for 127.0.0.1 and for no name."""
    server = server_or_skip(hba=HBA, settings=SETTINGS, start=False)
    authority = or_skip(lambda: Authority(server.folder))
    pair = authority.sign("server", "IP:127.0.0.1")
    server.own(*pair, authority.pair.cert)
    server.start()
    yield Secured(server, authority)
    server.close()


@pytest.fixture(params=["postgres-server"])
def engine_mode(request: pytest.FixtureRequest) -> str:
    mode: str = request.param
    return mode


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGSSLMODE", raising=False)


@pytest.fixture(autouse=True)
async def _hung_up() -> AsyncIterator[None]:
    """TLS takes a moment to hang up after a refusal; the driver does not wait for it."""
    yield
    selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    async with asyncio.timeout(10):
        while len(selector.get_map()) > 1:  # noqa: ASYNC110  (the loop's own pipe stays)
            await asyncio.sleep(0.005)


async def is_encrypted(url: str) -> bool:
    """Whether a URL can be worked with, and by TLS."""
    engine = await open_engine(url)
    assert isinstance(engine, PostgresEngine)
    assert created(await engine.jobs.enqueue([a_job()])) == [True]
    rows = await engine.store.read("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    await engine.close()
    return bool(rows[0][0])


async def test_every_mode(secured: Secured, engine_mode: str) -> None:
    root = secured.root
    assert not await is_encrypted(secured.url("sslmode=disable"))
    for options in ("", "sslmode=prefer", "sslmode=require", f"sslmode=verify-ca&{root}"):
        assert await is_encrypted(secured.url(options)), options
    assert await is_encrypted(secured.url(f"sslmode=verify-full&{root}"))


async def test_a_name_that_is_not_in_the_certificate(secured: Secured) -> None:
    assert await is_encrypted(secured.url(f"sslmode=verify-ca&{secured.root}", host="localhost"))
    with pytest.raises(BadUrl, match=r"certificate is not accepted.*localhost"):
        await open_engine(secured.url(f"sslmode=verify-full&{secured.root}", host="localhost"))


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
async def test_another_authority_is_refused(secured: Secured, tmp_path: Path, mode: str) -> None:
    stranger = Authority(tmp_path, "stranger")
    with pytest.raises(BadUrl, match=r"certificate is not accepted.*sslrootcert"):
        await open_engine(secured.url(f"sslmode={mode}&sslrootcert={stranger.pair.cert}"))


async def test_a_server_without_tls_is_refused_where_it_is_asked_for(own_server: PostgresServer) -> None:
    with pytest.raises(BadUrl, match="does not offer TLS, which sslmode=require asks for"):
        await open_engine(own_server.url() + "?sslmode=require")


async def test_a_server_that_wants_tls_is_not_reached_without(secured: Secured) -> None:
    with pytest.raises(BadUrl, match="no encryption"):
        await open_engine(secured.url("sslmode=disable", user="hidden"))


async def test_a_client_with_a_certificate_needs_no_password(secured: Secured) -> None:
    admin = await open_engine(secured.url(""))
    assert isinstance(admin, PostgresEngine)
    await admin.store.commands.use(
        lambda connection: connection.execute(
            "CREATE ROLE certified LOGIN; CREATE SCHEMA certified AUTHORIZATION certified"
        )
    )
    await admin.close()
    cert, key = secured.authority.sign("certified")
    url = secured.url(f"sslmode=verify-full&{secured.root}", user="certified")
    engine = await open_engine(f"{url}&sslcert={cert}&sslkey={key}", namespace="certified")
    assert created(await engine.jobs.enqueue([a_job()])) == [True]
    await engine.close()
    with pytest.raises(BadUrl, match="certificate"):
        await open_engine(url, namespace="certified")


async def test_a_server_whose_certificate_changes_is_an_outage_not_a_wrong_url(
    servers: Servers, connect: Connect, tmp_path: Path
) -> None:
    """Somebody renews it badly while we run: calls fail and go on when it is mended."""
    server = servers(hba=HBA, settings=SETTINGS, start=False)
    authority = or_skip(lambda: Authority(server.folder))
    pair = authority.sign("server", "IP:127.0.0.1")
    server.own(*pair, authority.pair.cert)
    server.start()
    engine = await connect(f"{server.url()}?sslmode=verify-ca&sslrootcert={authority.pair.cert}")
    good = [path.read_bytes() for path in pair]
    bad = Authority(tmp_path, "stranger").sign("server", "IP:127.0.0.1")

    async def restart(files: list[bytes]) -> None:
        server.kill()
        for path, content in zip(pair, files, strict=True):
            path.write_bytes(content)
        server.start()

    await restart([path.read_bytes() for path in bad])
    with pytest.raises(EngineUnavailable, match=r"certificate is not accepted"):
        await engine.inspect.counts()
    await restart(good)
    assert created(await until_it_works(lambda: engine.jobs.enqueue([a_job()]))) == [True]
