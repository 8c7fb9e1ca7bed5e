"""The clock of deadlines inside one machine: it goes on while the machine is suspended, and cannot be
set."""

import time
from collections.abc import Callable
from functools import partial

BOOT_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

boot_ns: Callable[[], int] = partial(time.clock_gettime_ns, BOOT_CLOCK)
"""Now, in nanoseconds; the same in all processes of the machine."""
