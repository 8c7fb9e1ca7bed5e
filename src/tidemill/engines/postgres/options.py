"""The options of a PostgreSQL URL."""

from tidemill.engine.shared.url_options import Options, TlsFiles, choice
from tidemill.engine.shared.url_options import read as read_options
from tidemill.model.errors import BadUrl

_FILES = TlsFiles("sslrootcert", "sslcert", "sslkey")
_OPTIONS = (
    *("call_timeout", "connect_timeout", "durability", "host", "listen", "port", "prepared"),
    *("sslmode", *_FILES, "target_session_attrs"),
)
_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


def unreadable() -> BadUrl:
    """Without a word of the URL: what cannot be told apart may be a part of the password."""
    return BadUrl(
        "a PostgreSQL URL looks like postgresql://user:password@host:5432/database; in user, password and "
        "database / ? # @ : are written as %2F %3F %23 %40 %3A"
    )


def read(query: str) -> Options:
    """The options by name; `BadUrl` for one that is not known."""
    return read_options(query, _OPTIONS, "PostgreSQL", unreadable)


def tls(options: Options) -> dict[str, str]:
    """The options of TLS. Without it the files are not read."""
    mode = choice(options, "sslmode", _MODES, "prefer")
    _FILES.check(options, read=mode != "disable")
    return {name: options[name] for name in ("sslmode", *_FILES) if options.get(name)}


def yes(options: Options, name: str) -> bool | None:
    """Yes, no, or None for auto."""
    return {"yes": True, "no": False, "auto": None}[choice(options, name, ("yes", "no", "auto"), "auto")]
