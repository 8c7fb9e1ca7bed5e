"""Every error that Penstock raises on purpose.

    PenstockError
    +-- BadInput (ValueError)         what was asked makes no sense; nothing was changed
    |   +-- BadUrl                    the engine's URL cannot be used
    |   +-- PayloadTooLarge           arguments or result over the limit
    |   +-- UnknownParent             `after=` names a job that does not exist
    |   +-- UnknownQueue              an operator named a queue that does not exist
    +-- Refused                       the engine's state forbids it; nothing was changed
    |   +-- IllegalTransition         the state machine has no such step
    |   +-- ClaimantRetired           this claimant was declared dead; start a new one
    |   +-- ClaimOutOfOrder           an older claim number than one already answered
    |   +-- MemberGone                beat first: the engine does not know this member
    |   +-- SingleProcess             an in-memory engine cannot be shared with another process
    +-- EngineError                   the engine could not do it
        +-- EngineUnavailable         out of reach or locked; trying again may help
        |   +-- EngineFull            no space left; trying again helps once there is
        +-- EngineClosed              closed by this process: trying again does not help
        +-- EngineDamaged             the data cannot be read; restore a backup
        +-- NotOurs                   the file or schema belongs to something else
        +-- SchemaTooOld              not migrated yet, and migrating was not allowed
        +-- SchemaTooNew              made by a newer Penstock that this one must not touch

A message says what was wrong and what to do next. A caller that repeats a call after
`EngineUnavailable` is safe: every method of the engine contract answers a repeat.
"""


class PenstockError(Exception):
    """The root: `except PenstockError` catches everything below."""


class BadInput(PenstockError, ValueError):
    """What was asked makes no sense. Nothing was changed."""


class BadUrl(BadInput):
    """The engine's URL cannot be used as it stands."""


class PayloadTooLarge(BadInput):
    """Arguments or a result are larger than the limit."""


class UnknownParent(BadInput):
    """`after=` names a job that the engine does not have."""


class UnknownQueue(BadInput):
    """An operator named a queue that does not exist."""


class Refused(PenstockError):
    """The engine's state forbids it. Nothing was changed."""


class IllegalTransition(Refused):
    """The state machine has no such step."""


class ClaimantRetired(Refused):
    """This claimant was declared dead and its jobs were released; start a new incarnation."""


class ClaimOutOfOrder(Refused):
    """A claim number lower than one that was already answered."""


class MemberGone(Refused):
    """The engine does not know this member (never beat, or dropped after its lease): beat first."""


class SingleProcess(Refused):
    """An in-memory engine lives in one process only."""


class EngineError(PenstockError):
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
    """The file, schema or keyspace belongs to something other than Penstock."""


class SchemaTooOld(EngineError):
    """The schema has to be migrated first, and that was not allowed here."""


class SchemaTooNew(EngineError):
    """The schema was made by a newer Penstock which says that this one is too old for it."""
