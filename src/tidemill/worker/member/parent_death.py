"""Parent death: a process that was started never outlives the process that started it.

A supervisor that is killed with -9 can notify no process. Its worker processes would go on without heartbeats
and run jobs that others take over; and so would their runners. A loop that watches a pipe is not enough: the
task that blocks the loop or holds the GIL is just the one to get rid of.

So the kernel does it. Each process inherits the read end of a pipe to which nothing is ever written. The
parent holds the only write end. The child requests a signal when something happens to the pipe (`O_ASYNC`),
chooses SIGKILL as that signal (`F_SETSIG`), and names its whole process group as the receiver (`F_SETOWN`),
so that what a task has started ends too. However the parent ends, its end of the pipe closes, and the kernel
kills the group. Measured: within 2 ms, while a regular expression held the GIL.

Where `F_SETSIG` does not exist, a thread waits for the end of the pipe instead. A held GIL delays that
thread.
"""

import fcntl
import os
import select
import signal
import threading

ORPHANED = 70
"""The exit code of a process whose parent is gone."""


def die_with_parent(fd: int) -> None:
    """From now on this process and its group end when the other end of the pipe closes."""
    os.set_inheritable(fd, False)
    if hasattr(fcntl, "F_SETSIG"):
        own = os.getpid()
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(fd, fcntl.F_SETOWN, -own if os.getpgrp() == own else own)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
    else:
        threading.Thread(
            target=_wait_for_the_end, args=(fd,), name="tidemill-parent-death", daemon=True
        ).start()
    if _is_closed(fd):  # before the signal was requested
        os._exit(ORPHANED)


def _is_closed(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def _wait_for_the_end(fd: int) -> None:
    os.read(fd, 1)
    os._exit(ORPHANED)
