"""PostgreSQL's errors as ours. A message never contains what was sent: it might be a secret."""

import socket
import ssl
from collections.abc import Sequence

import asyncpg

from tidemill.engines.postgres.url import Address, PostgresUrl
from tidemill.model.errors import (
    BadInput,
    BadUrl,
    EngineDamaged,
    EngineFull,
    EngineUnavailable,
    NotUnique,
    TidemillError,
    UnknownParent,
    UnknownQueue,
    UnknownTask,
)
from tidemill.model.ids import show_id

_OURS = {"PN001": UnknownParent, "PN002": BadInput, "PN003": UnknownQueue, "PN011": UnknownTask}
"""Raised by our own functions."""
_AGAIN = ("40001", "40P01")
"""Serialization failure, deadlock: nothing was applied, and the engine repeats the call by itself."""
_NO_ENTRY = ("28", "3D", "42501")
"""Authentication, no such database, no permission."""
_FULL = ("53100", "53200", "54000")
_MISSING = ("42P01", "42883", "3F000", "42703")
_READ_ONLY = "25006"
_NO_STATEMENT = ("26000", "42P05")
"""A prepared statement is not there, or already: a pooler gave us another process. Nothing was applied."""
_HANGS_UP = ("08", "57P")
"""The server has broken the connection off, or is about to."""
_IDLE = "57P05"
_NO_ROOM = "53300"
_STARTUP = "startup parameter"
_NO_TLS = "rejected SSL upgrade"


class NoServer(Exception):
    """No server could be connected to: each that was tried, and why not."""

    def __init__(self, failures: Sequence[tuple[Address | None, Exception]]) -> None:
        super().__init__("no server")
        self.failures = failures


def passed_over(error: Exception) -> bool:
    """Whether another host may do better: this one is away, starting, full, or not the one to write to."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith((*_HANGS_UP, _NO_ROOM))
    return isinstance(error, OSError | asyncpg.TargetServerAttributeNotMatched)


def may_repeat(error: BaseException) -> bool:
    """Whether the call was certainly not applied, and is as good at once as later: the server undid it
    because of others, or did not find a statement that it had prepared."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate in (*_AGAIN, *_NO_STATEMENT)


def was_idle(error: BaseException) -> bool:
    """Whether the connection had ended while nothing was asked of it: the call was not applied."""
    if isinstance(error, asyncpg.PostgresError):
        return error.sqlstate == _IDLE
    # Refused by the driver before it sent anything. (Of the other internal ones it may have.)
    return isinstance(error, asyncpg.InterfaceError) or type(error) is asyncpg.InternalClientError


def is_read_only(error: BaseException) -> bool:
    """Whether the server refused because it cannot be written to (any more)."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate == _READ_ONLY


def is_pooled(error: BaseException) -> bool:
    """Whether a pooler stands before the server that does not know prepared statements."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate in _NO_STATEMENT


def is_bad_value(error: BaseException) -> bool:
    """Whether the driver could not even send a value; the connection is in order."""
    return isinstance(error, asyncpg.exceptions.DataError | OverflowError | UnicodeError | TypeError)


def is_broken(error: BaseException) -> bool:
    """Whether the connection is of no more use."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith(_HANGS_UP)
    return not is_bad_value(error)


def translate(error: BaseException, url: PostgresUrl, waited_s: float | None = None) -> TidemillError:
    """Our error for one of the driver's or the server's. `waited_s`: for how long a call had to wait."""
    if isinstance(error, TidemillError):
        return error
    if isinstance(error, NoServer):
        return _unreachable(error, url)
    if isinstance(error, asyncpg.PostgresError):
        return _of_server(error, url)
    if is_bad_value(error):
        return BadInput(f"a value cannot be stored: {_first_line(error)}")
    if isinstance(error, TimeoutError):
        return EngineUnavailable(
            f"{url} did not answer in {waited_s or url.call_timeout:g} s; the call may have been applied"
        )
    return EngineUnavailable(f"{url} cannot be reached: {_why(error, url)}")


def translate_opening(error: BaseException, url: PostgresUrl) -> TidemillError:
    """The same while connecting for the first time: what stands in the URL may be wrong."""
    errors = [each for _, each in error.failures] if isinstance(error, NoServer) else [error]
    if all(map(_is_our_fault, errors)):
        why = "; ".join(dict.fromkeys(_why(each, url) for each in errors))
        return BadUrl(f"{url} cannot be used: {why}")
    return translate(error, url)


def _is_our_fault(error: BaseException) -> bool:
    """Whether trying again will not help before an operator has mended something."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith(_NO_ENTRY) or _STARTUP in _server_says(error)
    if isinstance(error, ssl.SSLError):
        return not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ssl.SSLSyscallError)
    if isinstance(error, ConnectionError):
        return _NO_TLS in str(error)
    return isinstance(error, ValueError | OverflowError)  # the driver cannot make sense of the options


def _why(error: BaseException, url: PostgresUrl) -> str:
    """Why a server could not be connected to, in words that say what to do where we know it."""
    says = _server_says(error)
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        if _STARTUP in says:
            return f"{says}; leave out durability=off and set it for the role, as the guide says"
        if state.startswith(("28", "3D")):
            return f"{says}; check user, password and database"
        if state == "42501":
            return f"{says}; GRANT CONNECT ON DATABASE ... TO that role"
        if state == _NO_ROOM:
            return f"{says}; a process of Tidemill takes up to nine connections"
        return says
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not accepted ({error.verify_message}); sslrootcert names the file of the "
            "authority that signed it, and verify-full wants the certificate to be for this host"
        )
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or 'no reason given'})"
    if _NO_TLS in str(error):
        return f"it does not offer TLS, which sslmode={url.tls.get('sslmode', 'prefer')} asks for"
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return "it cannot be written to, as a standby"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, socket.gaierror):
        return error.strerror or "the host's name is not known"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, ValueError):
        return "check its options"
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__


def _unreachable(error: NoServer, url: PostgresUrl) -> TidemillError:
    if len(error.failures) == 1:
        ((_, only),) = error.failures
        why = _why(only, url)
    else:
        why = "; ".join(f"{address}: {_why(each, url)}" for address, each in error.failures)
    return EngineUnavailable(f"{url} cannot be reached: {why}")


def _of_server(error: asyncpg.PostgresError, url: PostgresUrl) -> TidemillError:
    state = error.sqlstate or ""
    if state == "PN005":
        holder = bytes.fromhex(getattr(error, "detail", None) or "")
        return NotUnique(f"{_server_says(error)} by the job {show_id(holder)}: nothing was stored", holder)
    if state in _OURS:
        return _OURS[state](str(error))
    if state.startswith("22") or state == "23502":
        return BadInput(f"a value cannot be stored: {_server_says(error)}")
    if state in _FULL:
        return EngineFull(f"no space is left for {url}; nothing was changed: free some and try again")
    if state in _MISSING:
        return EngineDamaged(f"{url} lacks a part of our schema ({_server_says(error)}): restore a backup")
    if state.startswith("XX"):
        return EngineDamaged(f"{url} is damaged ({_server_says(error)}): restore a backup")
    if state == _READ_ONLY:
        return EngineUnavailable(f"{url} is read-only now, as a standby is; the primary is elsewhere")
    return EngineUnavailable(f"{url} cannot do this now: {_server_says(error)}")


def _server_says(error: BaseException) -> str:
    message = getattr(error, "message", None)
    return str(message) if message else type(error).__name__


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
