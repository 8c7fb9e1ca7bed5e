"""Connections by TLS, with certificates of our own making."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.integration.outages import until_it_works
from tests.servers.certificates import Authority
from tests.servers.fixtures import or_skip
from tests.servers.postgres import free_port
from tests.servers.redis import RedisServer
from tidemill.engine.registry import connect as open_engine
from tidemill.engines.redis.db import connect
from tidemill.model.errors import BadUrl, EngineUnavailable
from tidemill.testing.contract.fixtures import a_job, created


class Secured(NamedTuple):
    """A server that speaks TLS, on a port of its own, and who vouches for it."""

    server: RedisServer
    authority: Authority

    def url(self, options: str = "", *, host: str = "127.0.0.1") -> str:
        return f"rediss://{host}:{self.server.settings['tls-port']}/0?{options}"

    @property
    def root(self) -> str:
        return f"ssl_ca_certs={self.authority.pair.cert}"

    def pair(self, name: str) -> str:
        cert, key = self.authority.sign(name)
        return f"ssl_certfile={cert}&ssl_keyfile={key}"


@pytest.fixture
def secured(engine_mode: str, request: pytest.FixtureRequest) -> Iterator[Secured]:
    """Its certificate is for 127.0.0.1 and for no name. A parameter says whether it asks for one."""
    server = or_skip(RedisServer)
    authority = or_skip(lambda: Authority(server.folder))
    pair = authority.sign("server", "IP:127.0.0.1")
    server.settings |= {
        "tls-port": str(free_port()),
        "tls-cert-file": str(pair.cert),
        "tls-key-file": str(pair.key),
        "tls-ca-cert-file": str(authority.pair.cert),
        "tls-auth-clients": getattr(request, "param", "no"),
    }
    or_skip(server.start)
    yield Secured(server, authority)
    server.close()


@pytest.fixture(autouse=True)
async def _hung_up() -> AsyncIterator[None]:
    """TLS takes a moment to hang up after a refusal; the driver does not wait for it."""
    yield
    selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    async with asyncio.timeout(10):
        while len(selector.get_map()) > 1:  # noqa: ASYNC110  (the loop's own pipe stays)
            await asyncio.sleep(0.005)


async def works(url: str) -> None:
    """It can be worked with, signals included."""
    engine = await open_engine(url)
    subscription = await engine.signals.subscribe("ready:q")
    assert created(await engine.jobs.enqueue([a_job()])) == [True]
    assert await subscription.next(10) is not None
    await engine.close()


async def test_a_server_whose_certificate_is_vouched_for(secured: Secured) -> None:
    await works(secured.url(secured.root))
    await works(secured.url("ssl_cert_reqs=none"))


async def test_a_certificate_that_is_not_accepted(secured: Secured, tmp_path: Path) -> None:
    stranger = Authority(tmp_path, "stranger")
    for options, host in (
        ("", "127.0.0.1"),
        (f"ssl_ca_certs={stranger.pair.cert}", "127.0.0.1"),
        (secured.root, "localhost"),
    ):
        with pytest.raises(BadUrl, match=r"certificate is not accepted.*ssl_ca_certs"):
            await open_engine(secured.url(options, host=host))


@pytest.mark.parametrize("secured", ["yes"], indirect=True)
async def test_a_client_with_a_certificate(secured: Secured) -> None:
    await works(secured.url(f"{secured.root}&{secured.pair('client')}"))
    with pytest.raises(EngineUnavailable):
        await open_engine(secured.url(secured.root))


async def test_a_server_without_tls(own_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "CONNECT_S", 0.5)  # it waits for more, and says nothing
    with pytest.raises(EngineUnavailable, match=r"in 0\.5 s: does it speak TLS"):
        await open_engine(own_server.url().replace("redis://", "rediss://"))


async def test_files_are_checked_when_it_is_opened(secured: Secured, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    for wrong in (f"ssl_ca_certs={empty}", f"ssl_certfile={empty}", f"ssl_ca_certs={tmp_path}/none.pem"):
        with pytest.raises(BadUrl, match=r"ssl_ca_certs|ssl_certfile"):
            await open_engine(secured.url(wrong))


async def test_a_certificate_that_changes_is_an_outage_not_a_wrong_url(
    secured: Secured, tmp_path: Path
) -> None:
    """Somebody renews it badly while we run: calls fail and go on when it is mended."""
    engine = await open_engine(secured.url(secured.root))
    paths = [Path(secured.server.settings[name]) for name in ("tls-cert-file", "tls-key-file")]
    good = [path.read_bytes() for path in paths]
    bad = [path.read_bytes() for path in Authority(tmp_path, "stranger").sign("server", "IP:127.0.0.1")]
    for files, expected in ((bad, False), (good, True)):
        secured.server.stop()
        for path, content in zip(paths, files, strict=True):
            path.write_bytes(content)
        secured.server.start()
        if expected:
            assert created(await until_it_works(lambda: engine.jobs.enqueue([a_job()]))) == [True]
        else:
            with pytest.raises(EngineUnavailable, match="certificate is not accepted"):
                await engine.inspect.counts()
    await engine.close()
