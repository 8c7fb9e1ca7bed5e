"""Redis's errors as ours. A message never contains what was sent: it might be a secret.

The driver knows some errors by their code and then takes it off the text, so those are recognized by their
class.
"""

import re
import ssl

from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import TimeoutError as RedisTimeout

from tidemill.engine.shared.codes import another_members_claimant
from tidemill.engine.shared.uniques import not_unique
from tidemill.engines.redis.url import RedisUrl
from tidemill.model.errors import (
    BadUrl,
    EngineDamaged,
    EngineFull,
    EngineUnavailable,
    TidemillError,
    UnknownParent,
    UnknownQueue,
    UnknownTask,
)

_NOT_NOW = (
    (BusyLoadingError, "it is still loading its data"),
    (MasterDownError, "its link to the primary is down"),
    (ClusterDownError, "its cluster is down"),
    (TryAgainError, "its cluster is being rearranged"),
    (AskError, "its cluster keeps this namespace on another server: name that one"),
    (NoPermissionError, "our user may not do this: allow it in the server's ACL"),
)

_UNREADABLE = re.compile(
    r"user_script:\s?\d+: (attempt to|bad argument|DAMAGED)|too many results to unpack"
    r"|Bad data format|Missing bytes|is not an integer|is not a(?: valid)? float"
)
"""How a script ends that has met something else than we write. It is not rolled back, and a repeat would meet
the same again: so this is no `EngineUnavailable`. The names in such a text are those of our own code."""


def is_read_only(error: BaseException) -> bool:
    """Whether the server may be the wrong one: a replica, an old primary. Redis 6 wraps a script's errors."""
    return isinstance(error, ReadOnlyError) or (
        isinstance(error, ResponseError) and "-READONLY " in str(error)
    )


def translate(error: BaseException, url: RedisUrl, waited_s: float | None = None) -> TidemillError:
    """Our error for one of the driver's or the server's."""
    if isinstance(error, TidemillError):
        return error
    if isinstance(error, TimeoutError | RedisTimeout):
        waited_s = url.call_timeout if waited_s is None else waited_s
        return EngineUnavailable(f"{url} did not answer in {waited_s:g} s; the call may have been applied")
    if isinstance(error, OutOfMemoryError) or (isinstance(error, ResponseError) and "-OOM " in str(error)):
        return EngineFull(f"{url} has no memory left; nothing was changed: free some and try again")
    if is_read_only(error):
        return EngineUnavailable(f"{url} cannot do this now: it can only be read, as a replica")
    for kind, why in _NOT_NOW:
        if isinstance(error, kind):
            return EngineUnavailable(f"{url} cannot do this now: {why}")
    if isinstance(error, ResponseError):
        return _of_server(str(error), url)
    if (tls := _of_tls(error)) is not None:
        return EngineUnavailable(f"{url} cannot be reached: {_why(tls)}")
    return EngineUnavailable(f"{url} cannot be reached: {type(error).__name__}")


def translate_opening(error: BaseException, url: RedisUrl) -> TidemillError:
    """The same while connecting for the first time: what stands in the URL may be wrong."""
    if isinstance(error, TidemillError):
        return error
    text = str(error)
    if isinstance(error, AuthenticationError):
        return BadUrl(f"{url} cannot be used: it refuses us; check user and password")
    if isinstance(error, NoPermissionError):
        return BadUrl(f"{url} cannot be used: its ACL does not let this user do what we need")
    if isinstance(error, ResponseError) and "DB index" in text:
        return BadUrl(f"{url} cannot be used: it has no logical database of this number")
    tls = _of_tls(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        return BadUrl(f"{url} cannot be used: {_why(tls)}; check ssl_ca_certs and the host's name")
    if isinstance(error, ValueError):
        return BadUrl(f"{url} cannot be used as it stands: check its options")
    return translate(error, url)


def _of_tls(error: BaseException | None) -> ssl.SSLError | None:
    """The error of TLS behind one of the driver's, which keeps only its text."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error


def _why(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({error.verify_message})"
    return f"TLS failed ({error.reason or type(error).__name__}); does it speak TLS on this port?"


def _of_server(text: str, url: RedisUrl) -> TidemillError:
    code, _, rest = text.partition(" ")
    if code == "UNKNOWNPARENT":
        return UnknownParent(f"there is no job {rest} to wait for: enqueue parents first")
    if code == "NOTUNIQUE":
        holder, task, key = rest.split(" ", 2)
        return not_unique(task, key, bytes.fromhex(holder))
    if code == "UNKNOWNQUEUE":
        return UnknownQueue("there is no queue of this name")
    if code == "UNKNOWNTASK":
        return UnknownTask("no worker has published a task of this name")
    if code == "BADCLAIMANT":
        return another_members_claimant()
    if code in ("BUSY", "MISCONF", "NOREPLICAS"):
        return EngineUnavailable(f"{url} cannot do this now: {code}")
    if "WRONGTYPE " in text:
        return EngineDamaged(f"{url} holds something else under our keys: restore a backup")
    if _UNREADABLE.search(text):
        return EngineDamaged(f"{url} holds what we cannot read ({text[:200]}): restore a backup")
    return EngineUnavailable(f"{url} cannot do this: {text[:200]}")
