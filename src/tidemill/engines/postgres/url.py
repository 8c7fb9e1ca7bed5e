"""Where a PostgreSQL engine lives: its URL, taken apart and checked.

    postgresql://user:password@host:5432/database
    postgresql://user:password@one:5432,two:5432/database      the first that can be written to
    postgresql+asyncpg://, postgresql+psycopg://               the same, as SQLAlchemy writes it

Options in the query are those of libpq that concern the way to the server (`sslmode`, `sslrootcert`,
`sslcert`, `sslkey`, `target_session_attrs`, `connect_timeout`, `host`, `port`), and our own:

- `durability` = full (default), or off: commits do not wait for the disk (a crash of the server may undo
  the last ones, never damage);
- `call_timeout` in seconds (default 30): a call without an answer for so long is given up;
- `prepared` = yes, no, or auto (default): no where a pooler is found, because a PgBouncer in transaction mode
  may not know prepared statements;
- `listen` = yes, no, auto (default), or the address of the server itself, `host:port`, where the URL names a
  pooler in transaction mode, which loses LISTEN. Without it signals are polled for once a second there.

No message repeats a part of a URL that may be a part of a password.
"""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlencode, urlsplit

import msgspec

from tidemill.engine.shared.url_options import Options, choice, seconds
from tidemill.engines.postgres import options
from tidemill.model.errors import BadUrl

_HOST = re.compile(r"(\[[0-9A-Fa-f:.%\w]+\]|[^\[\]:@/,]+)?(?::(\d{1,5}))?")
_FOLDER = re.compile(r"(/[^:@,]*)(?::(\d{1,5}))?")
"""Of a Unix socket."""
_DIRECT = re.compile(
    r"(?:(?P<user>[^:@/]+)@)?(?P<host>\[[^\]]+\]|[^:@/\[\]]+):(?P<port>\d{1,5})(?:/(?P<database>[^/@]+))?"
)
PORT = 5432

Durability = Literal["full", "off"]
Target = Literal["any", "read-write", "primary"]
"""Of libpq's target_session_attrs; jobs are written, so the others make no sense."""
TARGETS: tuple[Target, ...] = ("any", "read-write", "primary")


class Address(NamedTuple):
    """One server. A host that begins with / is a folder with a Unix socket."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Direct(NamedTuple):
    """The way past a pooler, for LISTEN: what it does not say is as in the URL."""

    address: Address
    user: str | None = None
    database: str | None = None


class PostgresUrl(msgspec.Struct, frozen=True, kw_only=True):
    """One schema of one database."""

    shown: str
    """For people."""
    schema: str
    addresses: tuple[Address, ...] = ()
    """In the order in which they are tried; none: the driver chooses."""
    user: str | None = None
    password: str | None = None
    """Never shown."""
    database: str | None = None
    tls: Mapping[str, str] = {}
    """sslmode and the files that go with it."""
    target: Target = "any"
    connect_timeout: float = 10.0
    """For each address."""
    durability: Durability = "full"
    call_timeout: float = 30.0
    prepared: bool | None = None
    """None: find out."""
    listen: bool | Direct | None = None
    """None: where nothing speaks against it."""

    @property
    def channel(self) -> str:
        """The channel of this namespace's signals."""
        return f"tidemill:{self.schema}"

    @property
    def loud_channel(self) -> str:
        """The channel of its events."""
        return f"tidemill events:{self.schema}"

    @property
    def dsn(self) -> str:
        """The options that the driver takes in a URL alone; nothing else is in it."""
        return f"postgresql://?{urlencode({**self.tls, 'target_session_attrs': self.target})}"

    def __str__(self) -> str:
        return self.shown

    def __repr__(self) -> str:
        return f"PostgresUrl({self.shown!r}, {self.schema!r})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("shown", self.shown), ("schema", self.schema)]


def parse_url(url: str, namespace: str) -> PostgresUrl:
    """The URL, taken apart and checked, or `BadUrl`."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise options.unreadable() from None
    credentials, _, hosts = parts.netloc.rpartition("@")
    if "#" in url or "@" in parts.path or "/" in parts.path.removeprefix("/"):
        raise options.unreadable()
    user, _, password = credentials.partition(":")
    database = unquote(parts.path.removeprefix("/"))
    said = options.read(parts.query)
    addresses = _addresses(hosts, said)
    where = ",".join(map(str, addresses)) or "localhost"
    target: Target = "read-write" if len(addresses) > 1 else "any"
    return PostgresUrl(
        shown=f"{parts.scheme.partition('+')[0]}://{unquote(user) + '@' if user else ''}{where}/{database}",
        schema=namespace,
        addresses=addresses,
        user=unquote(user) or None,
        password=unquote(password) or None,
        database=database or None,
        tls=options.tls(said),
        target=choice(said, "target_session_attrs", TARGETS, target),
        connect_timeout=seconds(said, "connect_timeout", 10),
        durability=choice(said, "durability", ("full", "off"), "full"),
        call_timeout=seconds(said, "call_timeout", 30),
        prepared=options.yes(said, "prepared"),
        listen=_listen(said),
    )


def _addresses(hosts: str, said: Options) -> tuple[Address, ...]:
    """From `one:5432,two`; a part without a port has that of the option, or the usual one."""
    written = (hosts or said.get("host", "")).split(",") if hosts or said.get("host") else []
    ports = [_port(text) for text in said["port"].split(",")] if said.get("port") else []
    if len(ports) not in (0, 1, len(written) or 1):
        raise BadUrl("the option port has one number, or one for each host")
    found = []
    for number, part in enumerate(written or ([""] if ports else [])):
        text = unquote(part)
        match = _FOLDER.fullmatch(text) or _HOST.fullmatch(text)
        if match is None:
            raise options.unreadable()
        usual = ports[number if len(ports) > 1 else 0] if ports else PORT
        host = (match[1] or "localhost").strip("[]")
        found.append(Address(host, _port(match[2]) if match[2] else usual))
    return tuple(found)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65_536:
        raise BadUrl("a port is a number from 1 to 65535")
    return int(text)


def _listen(said: Options) -> bool | Direct | None:
    text = said.get("listen", "auto")
    if text in ("yes", "no", "auto"):
        return options.yes(said, "listen")
    found = _DIRECT.fullmatch(text)
    if found is None:
        raise BadUrl(
            "listen is yes, no, auto, or the server's own address, host:port (user@host:port/database where "
            "those differ; the password is the URL's)"
        )
    return Direct(Address(found["host"].strip("[]"), _port(found["port"])), found["user"], found["database"])
