"""Every error that Tidemill raises on purpose.

    TidemillError
    +-- BadInput (ValueError)         what was asked makes no sense; nothing was changed
    |   +-- BadUrl                    the engine's URL cannot be used
    |   +-- PayloadTooLarge           arguments or result over the limit
    |   |   +-- ResultTooLarge        the result: the work was done, so it is never done again
    |   +-- UnknownParent             `after=` names a job that does not exist
    |   +-- UnknownQueue              an operator named a queue that does not exist
    |   +-- UnknownSchedule           an operator named a schedule that does not exist
    |   +-- UnknownTask               no task of this name is known here or to any worker
    |   +-- UnknownJob                no job with this id, or it is no longer kept
    |   +-- BadArguments              the arguments do not fit the task's signature
    |   +-- BadPayload                the stored arguments cannot be read, or do not fit the function
    |   +-- Unencodable               a value has no JSON form
    |   |   +-- UnencodableResult     the same of a result
    +-- Refused                       the engine's state forbids it; nothing was changed
    |   +-- IllegalTransition         the state machine has no such step
    |   +-- ClaimantRetired           this claimant was declared dead; start a new one
    |   +-- ClaimOutOfOrder           an older claim number than one already answered
    |   +-- MemberGone                heartbeat first: the engine does not know this member
    |   +-- QueueChanged              the options of a queue are not as the caller has read them
    |   +-- SingleProcess             an in-memory engine cannot be shared with another process
    |   +-- IdTaken                   `using(id=...)` of a job that is there and was another call
    |   +-- NotUnique                 `on_conflict="refuse"`: another job holds the unique key
    |   +-- SyncInLoop                a blocking call inside a running event loop: use its async form
    |   +-- NoCurrentJob              `current_job()` outside of a running job
    |   +-- NoTransaction             `transaction=` was given something that no transaction is open on
    |   +-- WrongPlace                `transaction=` leads to another database than the app's jobs are in
    |   +-- StaleRun                  `complete()` by a run that no longer holds its job
    |   +-- AlreadyCompleted          `complete()` by a run whose first one has committed
    |   +-- NotCommitted              a task called `complete()` and its transaction did not commit
    |   +-- SnoozesUsedUp             a task raised `Snooze` more often than its policy allows
    |   +-- StartupFailed             a start-up task raised: its worker process does not work
    +-- NoResult                      a job ended, or has not ended, without a result to give
    |   +-- JobFailed                 it is dead; carries its last failure and the remote traceback
    |   +-- JobCancelled              it was cancelled
    |   +-- ResultTimeout (TimeoutError)  it has not ended in the time given
    |   +-- ResultGone                it completed, and its queue does not keep results
    |   +-- BadResult                 it completed, but its result does not fit the return type known here
    +-- EngineError                   the engine could not do it
        +-- EngineUnavailable         out of reach or locked; trying again may help
        |   +-- EngineFull            no space left; trying again helps once there is
        +-- EngineClosed              closed by this process: trying again does not help
        +-- EngineDamaged             the data cannot be read; restore a backup
        +-- NotOurs                   the file or schema belongs to something else
        +-- SchemaTooOld              not migrated yet, and migrating was not allowed
        +-- SchemaTooNew              made by a newer Tidemill that this one must not touch

A message says what was wrong and what to do next. A caller that repeats a call after
`EngineUnavailable` is safe: every method of the engine contract answers a repeat.
"""

from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from tidemill.model.jobs.job import Failure


class TidemillError(Exception):
    """The root: `except TidemillError` catches everything below."""


class BadInput(TidemillError, ValueError):
    """What was asked makes no sense. Nothing was changed."""


class BadUrl(BadInput):
    """The engine's URL cannot be used as it stands."""


class PayloadTooLarge(BadInput):
    """Arguments or a result are larger than the limit."""


class ResultTooLarge(PayloadTooLarge):
    """What a task returned, or gave to `complete()`, is larger than the limit. Its job is dead at once:
    the work was done, and another attempt would do it again."""


class UnknownParent(BadInput):
    """`after=` names a job that the engine does not have."""


class UnknownQueue(BadInput):
    """An operator named a queue that does not exist."""


class UnknownSchedule(BadInput):
    """An operator named a schedule that does not exist."""


class UnknownTask(BadInput):
    """No task of this name is known here or to any worker."""


class UnknownJob(BadInput):
    """No job with this id: never enqueued here, dropped, or no longer kept."""


class BadArguments(BadInput):
    """The arguments do not fit the task's signature."""


class BadPayload(BadInput):
    """The stored arguments cannot be read, or do not fit the function that is to run."""


class Unencodable(BadInput):
    """A value has no JSON form, or would come back as something else."""


class UnencodableResult(Unencodable):
    """What a task returned, or gave to `complete()`, has no JSON form. Its job is dead at once: the work was
    done, and another attempt would do it again."""


UNSTORABLE = (UnencodableResult, ResultTooLarge)
"""A run that ends by one of these is never tried again."""


class Refused(TidemillError):
    """The engine's state forbids it. Nothing was changed."""


class IllegalTransition(Refused):
    """The state machine has no such step."""


class ClaimantRetired(Refused):
    """This claimant was declared dead and its jobs were released. Claim under a new id."""


class ClaimOutOfOrder(Refused):
    """A claim number lower than one that was already answered."""


class MemberGone(Refused):
    """The engine does not know this member: it never sent a heartbeat, or was dropped after its lease. Send a
    heartbeat first."""


class QueueChanged(Refused):
    """The options of a queue have another version than the one that was named: read them again."""


class SingleProcess(Refused):
    """An in-memory engine lives in one process only."""


class IdTaken(Refused):
    """A job with the id that was given is there, of another task or with other arguments. It is left as it
    is, and this call was not stored. Or two calls of one `enqueue_many` have one id and are not the same.
    (The same call again is no error: that is what ids are for.)"""


class NotUnique(Refused):
    """`on_conflict="refuse"`, and another job holds the unique key. Nothing was stored."""

    def __init__(self, message: str, holder: bytes = b"") -> None:
        super().__init__(message)
        self.holder = holder
        """The id of the job that holds the key, as 16 bytes."""

    @property
    def id(self) -> str:
        """The id of the job that holds the key, as people see it."""
        return str(UUID(bytes=self.holder)) if self.holder else ""


class SyncInLoop(Refused):
    """A call that blocks was made inside a running event loop. The message names its async form."""


class NoCurrentJob(Refused):
    """`current_job()` was called where no job runs."""


class NoTransaction(Refused):
    """`transaction=` needs a connection with a transaction that can be joined. The message says how to begin
    one."""


class WrongPlace(Refused):
    """A connection given as `transaction=` leads to another database than the app's."""


class StaleRun(Refused):
    """This run no longer holds its job: another run has it, or it has ended. Nothing was written; let the
    error end the transaction."""


class AlreadyCompleted(Refused):
    """An earlier `complete()` of this run has committed, together with its rows. Nothing was written; let the
    error end the transaction."""


class NotCommitted(Refused):
    """A task called `complete()`, but that transaction was rolled back or never committed."""


class SnoozesUsedUp(Refused):
    """A task raised `Snooze` once more than its policy allows: this attempt has failed."""


class StartupFailed(Refused):
    """A start-up task of this process raised: it does not work."""


class NoResult(TidemillError):
    """There is no result to give."""


class JobFailed(NoResult):
    """The job is dead. `failure` is its last failure; the message ends with the remote traceback."""

    def __init__(self, message: str, failure: "Failure | None" = None) -> None:
        super().__init__(message)
        self.failure = failure


class JobCancelled(NoResult):
    """The job was cancelled."""


class ResultTimeout(NoResult, TimeoutError):
    """The job has not ended in the time given. It goes on."""


class ResultGone(NoResult):
    """The job completed, but its queue keeps no results."""


class BadResult(NoResult):
    """The job completed, but its result does not fit the return type of the function known here."""


class EngineError(TidemillError):
    """The engine could not do it."""


class EngineUnavailable(EngineError):
    """Out of reach, locked or failing over. The call may be repeated."""


class EngineFull(EngineUnavailable):
    """No space left. Nothing was changed; the call may be repeated once there is space."""


class EngineClosed(EngineError):
    """This engine object was closed. Nothing was changed; repeating the call does not help."""


class EngineDamaged(EngineError):
    """The stored data cannot be read."""


class NotOurs(EngineError):
    """The file, schema or keyspace belongs to something other than Tidemill."""


class SchemaTooOld(EngineError):
    """The schema has to be migrated first, and that was not allowed here."""


class SchemaTooNew(EngineError):
    """The schema was made by a newer Tidemill which says that this one is too old for it."""
