"""Where a Redis engine lives: its URL, taken apart and checked.

    redis://user:password@host:6379/0        rediss:// for TLS        redis+unix:///path/to/socket?db=0

Options in the query:

- `call_timeout` in seconds (default 30): a call without an answer for so long is given up;
- `durability` = server (default): as durable as the server is configured; or replicated: a call that writes
  returns when `replicas` (default 1) have it too, and fails as unknown where they do not within
  `replica_timeout` seconds (default 2);
- `ssl_ca_certs`, `ssl_certfile`, `ssl_keyfile`: paths, for `rediss://`;
- `ssl_cert_reqs` = required (default) or none.
"""

from urllib.parse import unquote, urlsplit

import msgspec

from tidemill.engine.shared.url_options import seconds
from tidemill.engines.redis import options

DEFAULT_PORT = 6379


class RedisUrl(msgspec.Struct, frozen=True, kw_only=True):
    """One namespace in one logical database of one server."""

    shown: str
    """For people."""
    namespace: str
    host: str = "localhost"
    port: int = DEFAULT_PORT
    path: str | None = None
    """Of a unix socket, instead of host and port."""
    db: int = 0
    user: str | None = None
    password: str | None = None
    """Never shown."""
    tls: dict[str, str] | None = None
    call_timeout: float = 30.0
    replicas: int = 0
    """How many must have a write before it counts."""
    replica_timeout: float = 2.0

    @property
    def prefix(self) -> str:
        """Of every key. The braces make a namespace one slot of a cluster."""
        return f"{{{self.namespace}}}:"

    @property
    def channels(self) -> str:
        """Of every channel: channels know no logical databases, so the number stands in the name."""
        return f"{self.prefix}{self.db}/"

    def __str__(self) -> str:
        return self.shown

    def __repr__(self) -> str:
        return f"RedisUrl({self.shown!r}, {self.namespace!r})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("shown", self.shown), ("namespace", self.namespace)]


def parse_url(url: str, namespace: str) -> RedisUrl:
    """The URL, taken apart and checked, or `BadUrl`."""
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise options.unreadable() from None
    if "#" in url or "@" in parts.path + parts.query:
        raise options.unreadable()
    said = options.read(parts.query)
    socket = parts.scheme == "redis+unix"
    written = said.get("db", "") if socket else parts.path.removeprefix("/") or said.get("db", "")
    db = options.number_of_database(written)
    host = parts.hostname or "localhost"
    user = unquote(parts.username) if parts.username else None
    where = parts.path if socket else f"{f'[{host}]' if ':' in host else host}:{port}"
    call_timeout = seconds(said, "call_timeout", 30)
    replicas, replica_timeout = options.replicas(said, call_timeout)
    return RedisUrl(
        shown=f"{parts.scheme}://{user + '@' if user else ''}{where}{f'?db={db}' if socket else f'/{db}'}",
        namespace=namespace,
        host=host,
        port=port,
        path=parts.path if socket else None,
        db=db,
        user=user,
        password=unquote(parts.password) if parts.password else None,
        tls=options.tls(said, parts.scheme),
        call_timeout=call_timeout,
        replicas=replicas,
        replica_timeout=replica_timeout,
    )
