"""A program whose main thread enqueues and is interrupted again and again, while another thread enqueues too.

Prints how many enqueues were acknowledged, and how many interrupts there were. If it hangs, it prints the
stack of each thread and ends.
"""

import faulthandler
import signal
import sys
import threading

from tidemill import Tidemill

INTERRUPTS = 150
AGAIN_S = 2.0
"""One may be lost: what is raised in a callback of the garbage collector is forgotten. Then another comes."""
HANGS_S = 45.0


class Interrupt(BaseException):
    """As KeyboardInterrupt."""


def interrupt(*_: object) -> None:
    raise Interrupt


def main(url: str) -> None:
    app = Tidemill(url)

    @app.task
    def work(n: int) -> None: ...

    others = 0
    over = threading.Event()

    def produce() -> None:
        nonlocal others
        while not over.is_set():
            work.enqueue(-1)  # would raise if another's interrupt reached it
            others += 1

    work.enqueue(0)
    thread = threading.Thread(target=produce)
    thread.start()
    acknowledged, interrupts = 1, 0
    signal.signal(signal.SIGALRM, interrupt)
    while interrupts < INTERRUPTS:
        try:
            # A different moment each time, somewhere within a call.
            signal.setitimer(signal.ITIMER_REAL, 0.00001 + interrupts % 50 * 0.00004, AGAIN_S)
            while True:
                work.enqueue(1)  # would raise if an interrupt had left the engine unusable
                acknowledged += 1
        except Interrupt:
            interrupts += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    over.set()
    thread.join()
    app.close()
    print(acknowledged + others, interrupts)


if __name__ == "__main__":
    faulthandler.dump_traceback_later(HANGS_S, exit=True)
    main(sys.argv[1])
