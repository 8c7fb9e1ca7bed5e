"""Later, from inside a task: `raise RetryAfter(30)`, `raise Snooze(30)`.

Both end the run and let the job run again after a while. `RetryAfter` says that the attempt failed: it uses
an attempt, and the policy's own wait is not used. It is what an answer 429 with `Retry-After` wants. `Snooze`
says that it is too early: it uses no attempt, and the engine counts it with the job, so that a job cannot
snooze for ever (`Retry(snoozes=...)`).

They are exceptions like others: `except Exception` in a task catches them.
"""

from datetime import timedelta

from tidemill.model.time import Span, span_of


class Later(Exception):
    """What both have in common."""

    def __init__(self, seconds: float | timedelta, message: str = "") -> None:
        self.delay: Span = span_of(seconds)
        self.message = message
        super().__init__(seconds, message)

    def __str__(self) -> str:
        when = f"asked for a wait of {self.delay / 1e6:g} s"
        return f"{self.message} ({when})" if self.message else when


class RetryAfter(Later):
    """Raised by a task whose attempt failed and should be tried again after this time: seconds or a
    `timedelta`. If it was the last attempt, the job is dead. `on` and `give_up` of the policy are not asked.

        except httpx.HTTPStatusError as error:
            raise RetryAfter(float(error.response.headers["Retry-After"])) from error
    """


class Snooze(Later):
    """Raised by a task that should run later, without using an attempt: seconds or a `timedelta`. At most
    `Retry(snoozes=100)` times for a job; after that it is a failed attempt, `SnoozesUsedUp`."""
