"""Where a PostgreSQL engine lives: its URL, taken apart and checked.

    postgresql://user:password@host:5432/database

Options in the query, beside those of libpq that concern TLS (`sslmode`, `sslrootcert`, `sslcert`, `sslkey`):

- `durability` = full (default), or off: commits do not wait for the disk (a crash of the server may undo
  the last ones, never damage);
- `call_timeout` in seconds (default 30): a call without an answer for so long is given up;
- `prepared` = yes (default) or no: for a PgBouncer in transaction mode without prepared statements;
- `listen` = yes (default) or no: signals are asked for once a second instead, as behind a PgBouncer in
  transaction mode, which loses LISTEN.
"""

from typing import Literal
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import msgspec

from penstock.model.errors import BadUrl

_PASSED_ON = ("sslmode", "sslrootcert", "sslcert", "sslkey", "host", "port")
_OWN = ("call_timeout", "durability", "listen", "prepared")

Durability = Literal["full", "off"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One schema of one database."""

    dsn: str
    """For the driver. It may hold a password: never shown."""
    shown: str
    """For people."""
    schema: str
    durability: Durability = "full"
    call_timeout: float = 30.0
    prepared: bool = True
    listen: bool = True

    @property
    def channel(self) -> str:
        """Where signals of this namespace are heard."""
        return f"penstock:{self.schema}"

    def __str__(self) -> str:
        return self.shown

    def __repr__(self) -> str:
        return f"Place({self.shown!r}, {self.schema!r})"


def place_of(url: str, namespace: str) -> Place:
    """The place that a URL names, or `BadUrl`."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise BadUrl("a PostgreSQL URL looks like postgresql://user:password@host:5432/database") from None
    credentials, _, hosts = parts.netloc.rpartition("@")
    user = unquote(credentials.partition(":")[0])
    database = unquote(parts.path.removeprefix("/"))
    if "/" in database or "#" in url:
        raise BadUrl(f"{hosts}{parts.path} names no database: after the host comes one name, with # as %23")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options:
        if name not in (*_PASSED_ON, *_OWN):
            known = ", ".join(sorted((*_PASSED_ON, *_OWN)))
            raise BadUrl(f"unknown option {name!r}; a PostgreSQL URL takes {known}")
    passed_on = {name: value for name, value in options.items() if name in _PASSED_ON}
    where = hosts or options.get("host", "localhost")
    return Place(
        dsn=urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(passed_on), "")),
        shown=f"{parts.scheme}://{user + '@' if user else ''}{where}/{database}",
        schema=namespace,
        durability=_durability(options.get("durability", "full")),
        call_timeout=_seconds(options.get("call_timeout", "30")),
        prepared=_yes("prepared", options.get("prepared", "yes")),
        listen=_yes("listen", options.get("listen", "yes")),
    )


def _durability(text: str) -> Durability:
    if text not in ("full", "off"):
        raise BadUrl(f"durability is full or off, not {text!r}")
    return text  # type: ignore[return-value]


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 < seconds <= 86_400:
        raise BadUrl(f"call_timeout is a number of seconds up to 86400, not {text!r}")
    return seconds


def _yes(name: str, text: str) -> bool:
    if text not in ("yes", "no"):
        raise BadUrl(f"{name} is yes or no, not {text!r}")
    return text == "yes"
