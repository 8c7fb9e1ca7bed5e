"""The times of a run, and the bounds that follow from them."""

import msgspec


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """A quarter of the defaults, so that minutes hold many leases."""

    heartbeat_s: float = 0.5
    lease_s: float = 2.5
    sweep_s: float = 0.5
    process_bound_s: float = 1.0
    """A worker process dies under a living supervisor: its jobs are ready again."""
    drain_s: float = 60.0
    """From the last healing to the end of the last job."""
    catch_up_s: float = 30.0
    """From the last healing until the schedules have made up for the ticks that were missed."""
    slack_s: float = 4.0
    """For a machine that others use too: bounds are measured, and asserted with this much more."""

    @property
    def host_bound_s(self) -> float:
        """A whole member dies: its jobs are ready again (12 s with the defaults)."""
        return self.lease_s + self.sweep_s
