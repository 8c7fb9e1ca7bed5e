"""The options of a Redis URL."""

from tidemill.engine.shared.url_options import Options, TlsFiles, choice, seconds
from tidemill.engine.shared.url_options import read as read_options
from tidemill.model.errors import BadUrl

_FILES = TlsFiles("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_TLS = (*_FILES, "ssl_cert_reqs")
_OPTIONS = ("call_timeout", "db", "durability", "replica_timeout", "replicas", *_TLS)


def unreadable() -> BadUrl:
    """Says nothing of the URL: where it cannot be read, a part of the password may stand anywhere."""
    return BadUrl(
        "unreadable URL: a Redis URL looks like redis://user:password@host:6379/0; "
        "write / ? # @ and : in a password as %2F %3F %23 %40 and %3A"
    )


def read(query: str) -> Options:
    """The options by name; `BadUrl` for one that is not known."""
    return read_options(query, _OPTIONS, "Redis", unreadable)


def tls(options: Options, scheme: str) -> dict[str, str] | None:
    """The options of TLS; None where it is not spoken."""
    chosen = {name: options[name] for name in _TLS if options.get(name)}
    if scheme != "rediss":
        if chosen:
            raise BadUrl(f"{', '.join(sorted(chosen))} is for TLS: write rediss:// instead of {scheme}://")
        return None
    choice(options, "ssl_cert_reqs", ("required", "none"), "required")
    _FILES.check(options)
    return chosen


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
