"""The engine: the sum of its facets."""

from typing import Protocol

from tidemill.engine.protocol.cluster import LeasesFacet, MembersFacet, SignalsFacet
from tidemill.engine.protocol.inspect import InspectFacet
from tidemill.engine.protocol.jobs import JobsFacet
from tidemill.engine.protocol.queues import QueuesFacet, TasksFacet
from tidemill.engine.protocol.schedules import SchedulesFacet
from tidemill.engine.protocol.transactions import BlockingFacet, TransactionsFacet
from tidemill.model.queues.queue import Keep
from tidemill.model.time import Instant


class Engine(Protocol):
    """All facets of one namespace. Safe for use from any task of the loop that opened it."""

    @property
    def name(self) -> str:
        """For people: the URL without its password."""
        ...

    @property
    def single_process(self) -> bool:
        """True: the state lives in this process and cannot be shared with others."""
        ...

    @property
    def keeps(self) -> Keep:
        """What is kept of completed and cancelled jobs in a queue that does not say it (`QueueOptions`)."""
        ...

    @property
    def jobs(self) -> JobsFacet: ...

    @property
    def blocking(self) -> BlockingFacet | None:
        """None where calls need the loop: a thread then goes through it."""
        ...

    @property
    def inspect(self) -> InspectFacet: ...

    @property
    def queues(self) -> QueuesFacet: ...

    @property
    def tasks(self) -> TasksFacet: ...

    @property
    def schedules(self) -> SchedulesFacet: ...

    @property
    def leases(self) -> LeasesFacet: ...

    @property
    def members(self) -> MembersFacet: ...

    @property
    def signals(self) -> SignalsFacet: ...

    @property
    def transactions(self) -> TransactionsFacet | None:
        """None where the engine has no SQL that a user's connection could run."""
        ...

    async def now(self) -> Instant:
        """The engine's clock."""
        ...

    async def close(self) -> None:
        """Finish the calls already made, then let go of every connection, thread and socket. Calls
        after it raise `EngineClosed`."""
        ...


class OpenEngine(Protocol):
    """What an engine package offers to the registry: `open_engine`."""

    async def __call__(self, url: str, *, namespace: str, migrate: bool = True) -> Engine:
        """Connect, check that the namespace is ours and its schema fits, migrate if allowed.

        Options of the engine stand in the URL's query; an unknown one is `BadUrl`. Raises `BadUrl`,
        `NotOurs`, `SchemaTooNew`, `SchemaTooOld`, `EngineDamaged` or `EngineUnavailable`, with what to do.
        Starting processes may race: one migrates, the others wait for it."""
        ...
