"""The settings of a worker, as plain data: a supervisor sends them to its processes as JSON."""

from typing import Literal, TypeAlias

import msgspec

from tidemill.engine.protocol import BATCH_LIMIT
from tidemill.model.errors import BadInput
from tidemill.model.names import check_queue
from tidemill.model.scaling.process_range import ProcessRange
from tidemill.model.scaling.processes import RecycleBounds
from tidemill.model.schedules.schedule import PROGRAM
from tidemill.model.time import Instant
from tidemill.task.settings.setting import without_password

SLOTS_LIMIT = BATCH_LIMIT
"""The most slots of one process: one claim fills them."""
HELD_PER_SLOT = 4
"""Rows of the held table for each slot: one runs, one waits in the buffer, and as many again have ended and
their settle has not been answered."""

Role: TypeAlias = Literal["worker", "controller"]


class WorkerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker works. Lengths of time are in seconds."""

    url: str
    namespace: str = "tidemill"
    app: str = ""
    """`module:attr`, for processes that load it themselves."""
    began: Instant = 0
    """When the member began, by the engine's clock: of two workers that declare a schedule differently, the
    one that began later has the newer code."""
    roles: tuple[Role, ...] = ("worker", "controller")
    """What the member does: it runs jobs, it stands for controller, or both."""
    queues: tuple[str, ...] = ()
    """Empty: every queue that the app declares or whose tasks it has."""
    slots: int = 10
    """How many jobs run at once, in each process."""
    processes: int = 1
    processes_most: int | None = None
    """The number of processes follows the load up to this one. None: it is always `processes`."""
    scale_wait_s: float = 2.0
    """More processes start when waiting jobs would otherwise not begin within this time."""
    scale_calm_s: float = 30.0
    """Processes are stopped when fewer have been enough for this long."""
    recycle_after_jobs: int | None = None
    """A process that has finished so many jobs is replaced by a new one."""
    recycle_above_mb: int | None = None
    """A process that has more MiB of memory is replaced by a new one."""
    heartbeat_s: float = 2.0
    lease_s: float = 10.0
    sweep_s: float = 2.0
    give_up_after: int = 30
    """Failed heartbeats."""
    shutdown_timeout_s: float = 30.0
    cancel_grace_s: float | None = 5.0
    """From the abort flag to CancelledError or SIGKILL, for a job that was requested to stop. None: never."""
    stuck_after_s: float = 5.0
    """A job this long past its timeout is stuck: its process takes no more."""
    stuck_grace_s: float = 10.0
    """How long the other jobs of that process may go on before it is killed."""
    poll_s: float = 5.0
    """The safety poll: how long a claim waits for a signal that may be lost."""
    log_format: str = "text"

    def __post_init__(self) -> None:
        if not 1 <= self.slots <= SLOTS_LIMIT:
            raise BadInput(
                f"slots lie between 1 and {SLOTS_LIMIT:,}, not {self.slots}; for more use more processes"
            )
        if self.processes < 1:
            raise BadInput(f"a worker has 1 process or more, not {self.processes}")
        if self.processes_most is not None and self.processes_most < self.processes:
            raise BadInput(f"from {self.processes} to {self.processes_most} processes: the most is less")
        if self.scale_wait_s <= 0 or self.scale_calm_s <= 0:
            raise BadInput("scale_wait and scale_calm are longer than 0 s")
        for bound in (self.recycle_after_jobs, self.recycle_above_mb):
            if bound is not None and bound < 1:
                raise BadInput(f"a process is recycled after 1 job or more, above 1 MiB or more, not {bound}")
        if not 0 < self.heartbeat_s < self.lease_s:
            raise BadInput(
                f"a lease ({self.lease_s} s) must be longer than a heartbeat ({self.heartbeat_s} s): "
                "usual are 5 heartbeats"
            )
        if not self.roles:
            raise BadInput("a member is a worker, a controller, or both")
        for queue in self.queues:
            check_queue(queue)
        if len(set(self.queues)) != len(self.queues):
            raise BadInput("a worker's queues are named once each")

    def __repr__(self) -> str:
        return f"WorkerConfig({without_password(self.url)!r}, namespace={self.namespace!r}, app={self.app!r})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("url", without_password(self.url)), ("namespace", self.namespace), ("app", self.app)]

    @property
    def source(self) -> str:
        """The name under which its code declares schedules."""
        return self.app or PROGRAM

    @property
    def process_range(self) -> ProcessRange:
        return ProcessRange(self.processes, self.processes_most or self.processes)

    @property
    def recycle(self) -> RecycleBounds:
        return RecycleBounds(self.recycle_after_jobs, self.recycle_above_mb)

    @property
    def held_capacity(self) -> int:
        """How many rows the held table of one process needs."""
        return HELD_PER_SLOT * self.slots
