"""Engines that a test opens and that are closed even if it fails half-way."""

from tidemill.engine import registry
from tidemill.engine.protocol import Engine

_opened: list[Engine] = []


async def connect(url: str, *, namespace: str = registry.DEFAULT_NAMESPACE, migrate: bool = True) -> Engine:
    """As `registry.connect`."""
    engine = await registry.connect(url, namespace=namespace, migrate=migrate)
    _opened.append(engine)
    return engine


async def close_all() -> None:
    """Close what is still open."""
    while _opened:
        await _opened.pop().close()
