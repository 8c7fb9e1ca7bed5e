"""Where a Redis engine lives: its URL, taken apart and checked.

    redis://user:password@host:6379/0        rediss:// for TLS        redis+unix:///path/to/socket?db=0

Options in the query:

- `call_timeout` in seconds (default 30): a call without an answer for so long is given up;
- `ssl_ca_certs`, `ssl_certfile`, `ssl_keyfile`: paths, for `rediss://`;
- `ssl_cert_reqs` = required (default) or none.
"""

from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from penstock.model.errors import BadUrl

_TLS = ("ssl_ca_certs", "ssl_cert_reqs", "ssl_certfile", "ssl_keyfile")
_OPTIONS = ("call_timeout", "db", *_TLS)

DEFAULT_PORT = 6379


class Place(msgspec.Struct, frozen=True, kw_only=True):
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
        return f"Place({self.shown!r}, {self.namespace!r})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("shown", self.shown), ("namespace", self.namespace)]


def place_of(url: str, namespace: str) -> Place:
    """The place that a URL names, or `BadUrl`."""
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise _unreadable() from None
    if "#" in url or "@" in parts.path + parts.query:
        raise _unreadable()
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options:
        if name not in _OPTIONS:
            raise BadUrl(f"unknown option {name!r}; a Redis URL takes {', '.join(sorted(_OPTIONS))}")
    tls = {name: value for name, value in options.items() if name in _TLS}
    if tls and parts.scheme != "rediss":
        raise BadUrl(f"{', '.join(sorted(tls))} is for TLS: write rediss:// instead of {parts.scheme}://")
    if tls.get("ssl_cert_reqs", "required") not in ("required", "none"):
        raise BadUrl("ssl_cert_reqs is required or none")
    socket = parts.scheme == "redis+unix"
    db = _db(options.get("db", "") if socket else parts.path.removeprefix("/") or options.get("db", ""))
    host = parts.hostname or "localhost"
    user = unquote(parts.username) if parts.username else None
    where = parts.path if socket else f"{f'[{host}]' if ':' in host else host}:{port}"
    return Place(
        shown=f"{parts.scheme}://{user + '@' if user else ''}{where}{f'?db={db}' if socket else f'/{db}'}",
        namespace=namespace,
        host=host,
        port=port,
        path=parts.path if socket else None,
        db=db,
        user=user,
        password=unquote(parts.password) if parts.password else None,
        tls=tls if parts.scheme == "rediss" else None,
        call_timeout=_seconds(options.get("call_timeout", "30")),
    )


def _unreadable() -> BadUrl:
    """Says nothing of the URL: where it cannot be read, a part of the password may stand anywhere."""
    return BadUrl(
        "unreadable URL: a Redis URL looks like redis://user:password@host:6379/0; "
        "write / ? # @ and : in a password as %2F %3F %23 %40 and %3A"
    )


def _db(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise BadUrl(f"after the host of a Redis URL comes the number of a logical database, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 < seconds <= 86_400:
        raise BadUrl(f"call_timeout is a number of seconds up to 86400, not {text!r}")
    return seconds
