"""Fixtures for engines on a private server, and what those of one engine are made of."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.integration.outages import Groups
from tests.integration.supervisor.conftest import StartGroup, start_groups
from tests.servers.proxy import Proxy
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect as open_engine
from tidemill.testing.contract.fixtures import Claimant, Clock, clock

__all__ = ["behind", "claimant", "clock", "groups", "opening", "proxied_url"]

E = TypeVar("E", bound=Engine)

Sever = Callable[[float], Awaitable[object]]
"""Ends at least this share of the connections of engines at the URL, on the server's side."""


@asynccontextmanager
async def opening(url: str, kind: type[E]) -> AsyncIterator[Callable[..., Awaitable[E]]]:
    """Opens engines, at `url` unless another is given; closed at the end."""
    opened: list[E] = []

    async def one_more(other_url: str = url, **options: Any) -> E:
        engine = await open_engine(other_url, **options)
        assert isinstance(engine, kind)
        opened.append(engine)
        return engine

    yield one_more
    for engine in reversed(opened):
        await engine.close()


@pytest.fixture
async def claimant(engine: Engine, clock: Clock) -> Claimant:
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
    return claimant


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[Groups]:
    """Starts worker groups at a URL."""
    with ExitStack() as ending:

        def at(url: str) -> StartGroup:
            return ending.enter_context(contextmanager(start_groups)(url, tmp_path))

        yield at


def behind(url: str, proxy: Proxy) -> str:
    """The same URL, reached through the proxy."""
    scheme, _, rest = url.partition("127.0.0.1:")
    return f"{scheme}127.0.0.1:{proxy.port}/{rest.partition('/')[2]}"


@pytest.fixture
def proxied_url(url: str, proxy: Proxy) -> str:
    return behind(url, proxy)
