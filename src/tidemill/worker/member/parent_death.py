"""The lifeline: a process that was started never outlives the one that started it.

A supervisor killed with -9 can tell nobody. Its worker processes would go on, without heartbeats, running
jobs that others take over; and their own processes after them. A loop that watches a pipe is not enough: the
task that blocks the loop or holds the GIL is just the one to get rid of.

So the kernel does it. Each process is given the reading end of a pipe in which nobody ever writes; the
starter holds the only writing end. The process asks for a signal when something happens there
(`O_ASYNC`), for that signal to be SIGKILL (`F_SETSIG`), and for its whole process group to get it
(`F_SETOWN`), which takes along what a task has started. However the starter ends, its end closes, and the
kernel kills the group; measured: within 2 ms, while a regular expression held the GIL.

Where `F_SETSIG` does not exist a thread waits for the end of the pipe instead, which a held GIL delays.
"""

import fcntl
import os
import select
import signal
import threading

ORPHANED = 70
"""The exit code of a process whose starter is gone."""


def hold_on_to(fd: int) -> None:
    """From now on this process ends, with its group, when the other end of the pipe closes."""
    os.set_inheritable(fd, False)
    if hasattr(fcntl, "F_SETSIG"):
        own = os.getpid()
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(fd, fcntl.F_SETOWN, -own if os.getpgrp() == own else own)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
    else:
        threading.Thread(target=_wait_for_the_end, args=(fd,), name="tidemill-lifeline", daemon=True).start()
    if _is_cut(fd):  # before we asked
        os._exit(ORPHANED)


def _is_cut(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def _wait_for_the_end(fd: int) -> None:
    os.read(fd, 1)
    os._exit(ORPHANED)
