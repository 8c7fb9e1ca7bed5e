"""Time at the seam: int64 microseconds.

An `Instant` counts microseconds since 1970-01-01 UTC; a `Span` is a length in microseconds.
Both are plain ints: a claim of 100 jobs would otherwise build some 500 `datetime` objects
(about 1 microsecond each) that are never read. `datetime` and `timedelta` appear only in the
public API, RFC 3339 only in JSON.
"""

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from tidemill.model.errors import BadInput

Instant: TypeAlias = int
Span: TypeAlias = int

MILLISECOND: Span = 1_000
SECOND: Span = 1_000_000
MINUTE: Span = 60 * SECOND
HOUR: Span = 60 * MINUTE
DAY: Span = 24 * HOUR

FAR_FUTURE: Instant = 9_000_000_000 * SECOND
"""In the year 2255: below 2**53, so that every engine and JSON keep it exact."""
LONGEST: Span = 100 * 365 * DAY
"""The longest span: from any present moment on, its end lies before `FAR_FUTURE`."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def instant_of(moment: datetime) -> Instant:
    """A moment as microseconds; a naive `datetime` is refused, because it names no moment."""
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise BadInput(
            f"the moment {moment.isoformat()} has no time zone; "
            "use datetime.now(timezone.utc) or a zoneinfo.ZoneInfo, or pass a delay instead"
        )
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(instant: Instant) -> datetime:
    """The UTC `datetime` of an instant."""
    return _EPOCH + timedelta(microseconds=instant)


def span_of(length: float | timedelta) -> Span:
    """A length given in seconds or as `timedelta`; negative, infinite and NaN lengths are refused."""
    if isinstance(length, timedelta):
        span = length // _MICROSECOND
    elif isinstance(length, bool) or not isinstance(length, int | float):
        raise BadInput(f"a length of time is a number of seconds or a timedelta, not {type(length).__name__}")
    elif length != length or length in (float("inf"), float("-inf")):
        raise BadInput(f"a length of time must be finite, not {length}")
    else:
        span = round(length * SECOND)
    if not 0 <= span <= LONGEST:
        raise BadInput(f"a length of time must lie between 0 and {LONGEST // SECOND} seconds, not {length}")
    return span


def check_span(span: Span) -> Span:
    """The same span, or `BadInput`."""
    if type(span) is not int or not 0 <= span <= LONGEST:
        raise BadInput(f"a span lies between 0 and {LONGEST} microseconds, not {span!r}")
    return span


def length_of(span: Span) -> timedelta:
    """The `timedelta` of a span."""
    return timedelta(microseconds=span)
