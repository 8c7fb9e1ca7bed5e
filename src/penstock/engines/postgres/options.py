"""Reading the options of a PostgreSQL URL, one rule each."""

import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import parse_qsl

from penstock.model.errors import BadUrl

_FILES = ("sslrootcert", "sslcert", "sslkey")
_OPTIONS = (
    *("call_timeout", "connect_timeout", "durability", "host", "listen", "port", "prepared"),
    *("sslmode", *_FILES, "target_session_attrs"),
)
_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")

Options = Mapping[str, str]
Choice = TypeVar("Choice", bound=str)


def unreadable() -> BadUrl:
    """Without a word of the URL: what cannot be told apart may be a part of the password."""
    return BadUrl(
        "a PostgreSQL URL looks like postgresql://user:password@host:5432/database; in user, password and "
        "database / ? # @ : are written as %2F %3F %23 %40 %3A"
    )


def read(query: str) -> Options:
    """The options by name; `BadUrl` for one that is not known."""
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name in options:
        if name not in _OPTIONS:
            if not re.fullmatch(r"[a-z_]{1,40}", name):  # the rest of a password with a question mark, maybe
                raise unreadable()
            raise BadUrl(f"unknown option {name!r}; a PostgreSQL URL takes {', '.join(sorted(_OPTIONS))}")
    return options


def tls(options: Options) -> dict[str, str]:
    """The options of TLS. What is in the files is looked at now: later it would look like an outage."""
    choice(options, "sslmode", _MODES, "prefer")
    chosen = {name: options[name] for name in ("sslmode", *_FILES) if options.get(name)}
    if "sslkey" in chosen and "sslcert" not in chosen:
        raise BadUrl("sslkey goes with sslcert, the certificate that it is for")
    if chosen.get("sslmode") == "disable":
        return chosen
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if root := chosen.get("sslrootcert"):
        _load("sslrootcert", root, lambda: context.load_verify_locations(cafile=root))
    if cert := chosen.get("sslcert"):
        key = chosen.get("sslkey")
        _load(
            "sslcert" if key is None else "sslcert or sslkey",
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


def yes(options: Options, name: str) -> bool | None:
    """Yes, no, or None for auto."""
    return {"yes": True, "no": False, "auto": None}[choice(options, name, ("yes", "no", "auto"), "auto")]


def choice(options: Options, name: str, choices: Sequence[Choice], usual: Choice) -> Choice:
    """One of a few words."""
    text = options.get(name, usual)
    for each in choices:
        if text == each:
            return each
    raise BadUrl(f"{name} is {', '.join(choices[:-1])} or {choices[-1]}, not {text!r}")
