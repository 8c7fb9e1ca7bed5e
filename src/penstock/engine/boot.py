"""The clock of deadlines inside one machine: it goes on while the machine is suspended, and nobody sets
it."""

import time

BOOT_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_ns() -> int:
    """Now, in nanoseconds; the same in all processes of the machine."""
    return time.clock_gettime_ns(BOOT_CLOCK)
