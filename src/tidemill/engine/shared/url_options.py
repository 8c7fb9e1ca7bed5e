"""The options in the query of a server's URL: one rule for each kind of value, the same for every engine.

Each engine says which options it has and how its URLs look. No message repeats what may be a part of a
password.
"""

import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar
from urllib.parse import parse_qsl

from tidemill.model.errors import BadUrl

Options = Mapping[str, str]
Choice = TypeVar("Choice", bound=str)

LONGEST_S = 86_400


def read(query: str, known: Sequence[str], store: str, unreadable: Callable[[], BadUrl]) -> Options:
    """The options by name; `BadUrl` for one that is not known, `unreadable` where it cannot be a name."""
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name in options:
        if name not in known:
            if not re.fullmatch(r"[a-z_]{1,40}", name):  # the rest of a password with a question mark, maybe
                raise unreadable()
            raise BadUrl(f"unknown option {name!r}; a {store} URL takes {', '.join(sorted(known))}")
    return options


def seconds(options: Options, name: str, usual: float) -> float:
    """A length of time."""
    text = options.get(name, "")
    try:
        length = float(text) if name in options else usual
    except ValueError:
        length = -1
    if not 0 < length <= LONGEST_S:
        raise BadUrl(f"{name} is a number of seconds up to {LONGEST_S}, not {text!r}")
    return length


def choice(options: Options, name: str, choices: Sequence[Choice], usual: Choice) -> Choice:
    """One of a few words."""
    text = options.get(name, usual)
    for each in choices:
        if text == each:
            return each
    *others, last = choices
    raise BadUrl(f"{name} is {', '.join(others)} or {last}, not {text!r}")


class TlsFiles(NamedTuple):
    """The options that name files for TLS, as an engine calls them."""

    root: str
    cert: str
    key: str

    def check(self, options: Options, *, read: bool = True) -> None:
        """What is in them is checked when the URL is read: later it would look like an outage."""
        root, cert, key = (options.get(name) for name in self)
        if key and not cert:
            raise BadUrl(f"{self.key} goes with {self.cert}, the certificate that it is for")
        if not read:
            return
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if root:
            _load(self.root, root, lambda: context.load_verify_locations(cafile=root))
        if cert:
            named = f"{self.cert} or {self.key}" if key else self.cert
            _load(named, cert, lambda: context.load_cert_chain(cert, key or None, ""))


def _load(option: str, file: str, load: Callable[[], None]) -> None:
    try:
        load()
    except ssl.SSLError as error:
        raise BadUrl(f"{option}: {file} is not what it should be ({error.reason or 'not PEM'})") from None
    except OSError as error:
        raise BadUrl(f"{option}: {file} cannot be read: {error.strerror}") from None
