"""From a URL to an open engine. Engines are imported only when their scheme is asked for."""

import re
from importlib import import_module
from types import ModuleType
from urllib.parse import urlsplit

from tidemill.engine.protocol import Engine, OpenEngine
from tidemill.model.errors import BadUrl
from tidemill.model.names import check_namespace

DEFAULT_NAMESPACE = "tidemill"
ENTRY_POINTS = "tidemill.engines"
"""Third parties register `scheme = "package.module"` under this group."""

_BUILT_IN = {
    "postgres": "tidemill.engines.postgres",
    "postgresql": "tidemill.engines.postgres",
    "redis": "tidemill.engines.redis",
    "redis+unix": "tidemill.engines.redis",
    "rediss": "tidemill.engines.redis",
    "sqlite": "tidemill.engines.sqlite",
}
_DRIVER = re.compile(r"(postgres|postgresql)\+(asyncpg|psycopg|psycopg2|psycopg_async)")
"""As SQLAlchemy writes a URL, so that one URL serves both. Which driver it names is of no concern here."""
_EXTRAS = {"asyncpg": "postgres", "redis": "redis"}
"""Drivers, and the extra of ours that installs each."""


async def connect(url: str, *, namespace: str = DEFAULT_NAMESPACE, migrate: bool = True) -> Engine:
    """Open the engine that a URL names. See `OpenEngine` for what it checks."""
    check_namespace(namespace)
    return await _opener(url)(url, namespace=namespace, migrate=migrate)


async def erase(url: str, *, namespace: str) -> None:
    """Delete a namespace on a server with everything in it, for good. No program may be using it."""
    check_namespace(namespace)
    erasing = getattr(_module(url), "erase", None)
    if erasing is None:
        raise BadUrl(f"{urlsplit(url).scheme}:// has no namespaces to erase; delete what it names yourself")
    await erasing(url, namespace=namespace)


def schemes() -> list[str]:
    """Every scheme that can be opened here."""
    from importlib.metadata import entry_points  # 30 of the 120 ms that importing Tidemill may take

    return sorted({*_BUILT_IN, *entry_points(group=ENTRY_POINTS).names})


def _opener(url: str) -> OpenEngine:
    opening: OpenEngine = _module(url).open_engine
    return opening


def _module(url: str) -> ModuleType:
    scheme = urlsplit(url).scheme if isinstance(url, str) else ""
    if found := _DRIVER.fullmatch(scheme):
        scheme = found[1]
    module = _BUILT_IN.get(scheme)
    if module is None:
        from importlib.metadata import entry_points

        for point in entry_points(group=ENTRY_POINTS, name=scheme):
            module = point.module
    if module is None:
        known = ", ".join(f"{name}://" for name in schemes())
        # Without a scheme nothing of it is shown: it may hold a password.
        wrong = f"{scheme!r} is not an engine's URL scheme" if scheme else "that is not an engine's URL"
        raise BadUrl(f"{wrong}; known here: {known}")
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None or module not in _BUILT_IN.values():
            raise
        raise BadUrl(
            f"{scheme}:// needs a driver that is not installed ({error.name}): "
            f"pip install -e '.[{extra}]' in a clone of Tidemill"
        ) from None
