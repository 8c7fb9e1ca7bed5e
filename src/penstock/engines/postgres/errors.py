"""PostgreSQL's errors as ours. A message never contains what was sent: it might be a secret."""

import asyncpg

from penstock.engines.postgres.place import Place
from penstock.model.errors import (
    BadInput,
    BadUrl,
    EngineDamaged,
    EngineFull,
    EngineUnavailable,
    PenstockError,
    UnknownParent,
    UnknownQueue,
)

_OURS = {"PN001": UnknownParent, "PN002": BadInput, "PN003": UnknownQueue}
"""Raised by our own functions."""
_AGAIN = ("40001", "40P01")
"""Serialization failure, deadlock: nothing was applied, and the engine repeats the call by itself."""
_NO_ENTRY = ("28", "3D", "42501")
"""Authentication, no such database, no permission."""
_FULL = ("53100", "53200", "54000")
_MISSING = ("42P01", "42883", "3F000", "42703")


def may_repeat(error: BaseException) -> bool:
    """Whether the server undid the call because of others, so that it can be made again at once."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate in _AGAIN


def translate(error: BaseException, place: Place) -> PenstockError:
    """Our error for one of the driver's or the server's."""
    if isinstance(error, PenstockError):
        return error
    if isinstance(error, asyncpg.PostgresError):
        return _of_server(error, place)
    if isinstance(error, asyncpg.exceptions.DataError | OverflowError | UnicodeError | TypeError):
        return BadInput(f"a value cannot be stored: {_first_line(error)}")
    if isinstance(error, TimeoutError):
        return EngineUnavailable(
            f"{place} did not answer in {place.call_timeout:g} s; the call may have been applied"
        )
    return EngineUnavailable(f"{place} cannot be reached: {type(error).__name__}")


def translate_opening(error: BaseException, place: Place) -> PenstockError:
    """The same while connecting for the first time: what stands in the URL may be wrong."""
    state = error.sqlstate if isinstance(error, asyncpg.PostgresError) else None
    if state is not None and state.startswith(_NO_ENTRY):
        return BadUrl(f"{place} cannot be used: {_server_says(error)}; check user, password and database")
    if isinstance(error, asyncpg.InterfaceError | ValueError | OverflowError):
        return BadUrl(f"{place} cannot be used as it stands: check its options")
    return translate(error, place)


def _of_server(error: asyncpg.PostgresError, place: Place) -> PenstockError:
    state = error.sqlstate or ""
    if state in _OURS:
        return _OURS[state](str(error))
    if state.startswith("22") or state == "23502":
        return BadInput(f"a value cannot be stored: {_server_says(error)}")
    if state in _FULL:
        return EngineFull(f"no space is left for {place}; nothing was changed: free some and try again")
    if state in _MISSING:
        return EngineDamaged(f"{place} lacks a part of our schema ({_server_says(error)}): restore a backup")
    if state.startswith("XX"):
        return EngineDamaged(f"{place} is damaged ({_server_says(error)}): restore a backup")
    if state == "25006":
        return EngineUnavailable(f"{place} is read-only now, as a standby is; the primary is elsewhere")
    return EngineUnavailable(f"{place} cannot do this now: {_server_says(error)}")


def _server_says(error: BaseException) -> str:
    message = getattr(error, "message", None)
    return str(message) if message else type(error).__name__


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
