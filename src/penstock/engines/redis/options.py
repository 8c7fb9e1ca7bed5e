"""Reading the options of a Redis URL, one rule each."""

import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import parse_qsl

from penstock.model.errors import BadUrl

_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_TLS = (*_FILES, "ssl_cert_reqs")
_OPTIONS = ("call_timeout", "db", "durability", "replica_timeout", "replicas", *_TLS)

Options = Mapping[str, str]
Choice = TypeVar("Choice", bound=str)


def unreadable() -> BadUrl:
    """Says nothing of the URL: where it cannot be read, a part of the password may stand anywhere."""
    return BadUrl(
        "unreadable URL: a Redis URL looks like redis://user:password@host:6379/0; "
        "write / ? # @ and : in a password as %2F %3F %23 %40 and %3A"
    )


def read(query: str) -> Options:
    """The options by name; `BadUrl` for one that is not known."""
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name in options:
        if name not in _OPTIONS:
            if not re.fullmatch(r"[a-z_]{1,40}", name):  # the rest of a password with a question mark, maybe
                raise unreadable()
            raise BadUrl(f"unknown option {name!r}; a Redis URL takes {', '.join(sorted(_OPTIONS))}")
    return options


def tls(options: Options, scheme: str) -> dict[str, str] | None:
    """The options of TLS; None where it is not spoken. What is in the files is looked at now: later it would
    look like an outage."""
    chosen = {name: options[name] for name in _TLS if options.get(name)}
    if scheme != "rediss":
        if chosen:
            raise BadUrl(f"{', '.join(sorted(chosen))} is for TLS: write rediss:// instead of {scheme}://")
        return None
    choice(options, "ssl_cert_reqs", ("required", "none"), "required")
    if "ssl_keyfile" in chosen and "ssl_certfile" not in chosen:
        raise BadUrl("ssl_keyfile goes with ssl_certfile, the certificate that it is for")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if root := chosen.get("ssl_ca_certs"):
        _load("ssl_ca_certs", root, lambda: context.load_verify_locations(cafile=root))
    if cert := chosen.get("ssl_certfile"):
        key = chosen.get("ssl_keyfile")
        _load(
            "ssl_certfile" if key is None else "ssl_certfile or ssl_keyfile",
            cert,
            lambda: context.load_cert_chain(cert, key, ""),
        )
    return chosen


def _load(option: str, file: str, load: Callable[[], None]) -> None:
    try:
        load()
    except ssl.SSLError as error:
        raise BadUrl(f"{option}: {file} is not what it should be ({error.reason or 'not PEM'})") from None
    except OSError as error:
        raise BadUrl(f"{option}: {file} cannot be read: {error.strerror}") from None


def replicas(options: Options, call_timeout: float) -> tuple[int, float]:
    """How many replicas are to have a write before it counts, and how long that may take; 0: none need."""
    replicated = choice(options, "durability", ("server", "replicated"), "server") == "replicated"
    for name in ("replicas", "replica_timeout"):
        if name in options and not replicated:
            raise BadUrl(f"{name} goes with durability=replicated")
    text = options.get("replicas", "1")
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= 100):
        raise BadUrl(f"replicas is a number from 1 to 100, not {text!r}")
    timeout = seconds(options, "replica_timeout", min(2, call_timeout / 2))
    if timeout >= call_timeout:
        raise BadUrl("replica_timeout must be shorter than call_timeout, which is for all of a call")
    return (int(text) if replicated else 0), timeout


def number_of_database(text: str) -> int:
    """From the path of the URL, or from `db`."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise BadUrl(f"after the host of a Redis URL comes the number of a logical database, not {text!r}")
    return int(text)


def seconds(options: Options, name: str, usual: float) -> float:
    """A length of time."""
    text = options.get(name, "")
    try:
        length = float(text) if name in options else usual
    except ValueError:
        length = -1
    if not 0 < length <= 86_400:
        raise BadUrl(f"{name} is a number of seconds up to 86400, not {text!r}")
    return length


def choice(options: Options, name: str, choices: Sequence[Choice], usual: Choice) -> Choice:
    """One of a few words."""
    text = options.get(name, usual)
    for each in choices:
        if text == each:
            return each
    raise BadUrl(f"{name} is {' or '.join(choices)}, not {text!r}")
