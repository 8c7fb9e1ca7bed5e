"""Redis's errors as ours. A message never contains what was sent: it might be a secret."""

from redis.exceptions import AuthenticationError, OutOfMemoryError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeout

from penstock.engines.redis.place import Place
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


def translate(error: BaseException, place: Place, waited_s: float | None = None) -> PenstockError:
    """Our error for one of the driver's or the server's."""
    if isinstance(error, PenstockError):
        return error
    if isinstance(error, TimeoutError | RedisTimeout):
        waited_s = place.call_timeout if waited_s is None else waited_s
        return EngineUnavailable(f"{place} did not answer in {waited_s:g} s; the call may have been applied")
    if isinstance(error, OutOfMemoryError):
        return EngineFull(f"{place} has no memory left; nothing was changed: free some and try again")
    if isinstance(error, ResponseError):
        return _of_server(str(error), place)
    return EngineUnavailable(f"{place} cannot be reached: {type(error).__name__}")


def translate_opening(error: BaseException, place: Place) -> PenstockError:
    """The same while connecting for the first time: what stands in the URL may be wrong."""
    if isinstance(error, PenstockError):
        return error
    text = str(error)
    refused = isinstance(error, AuthenticationError) or text.startswith(("NOAUTH", "WRONGPASS", "NOPERM"))
    if refused and isinstance(error, RedisError):
        return BadUrl(f"{place} cannot be used: it refuses us; check user and password")
    if isinstance(error, ResponseError) and "DB index" in text:
        return BadUrl(f"{place} cannot be used: it has no logical database of this number")
    if isinstance(error, ValueError):
        return BadUrl(f"{place} cannot be used as it stands: check its options")
    return translate(error, place)


def _of_server(text: str, place: Place) -> PenstockError:
    code, _, rest = text.partition(" ")
    if code == "UNKNOWNPARENT":
        return UnknownParent(f"there is no job {rest} to wait for: enqueue parents first")
    if code == "UNKNOWNQUEUE":
        return UnknownQueue("there is no queue of this name")
    if code == "BADCLAIMANT":
        return BadInput("this claimant belongs to another member: each has claimants of its own")
    if code == "WRONGTYPE" or "Bad data format" in text:
        return EngineDamaged(f"{place} holds something else under our keys: restore a backup")
    if code in ("READONLY", "LOADING", "MASTERDOWN", "BUSY", "CLUSTERDOWN", "MISCONF", "TRYAGAIN"):
        return EngineUnavailable(f"{place} cannot do this now: {code}")
    return EngineUnavailable(f"{place} cannot do this: {text[:200]}")
