"""Running one job: a pipeline of small steps over one value, `Run`.

    resolve     which code, and under which terms        unknown: given back with a delay
    decode      the arguments, by their annotations      bad: dead at once
    start       the board and the clock know of it       \\
    perform     the function is called                    > in its runner: loop, thread, process
    normalise   what it did becomes an outcome           /
    settle      the exchange gets it; the slot is free
    report      people hear of it

A step either passes the run on or ends it. Every run that began here is ended here exactly once, whatever
its code does, and only when its code has ended.
"""

from tidemill.engine.boot import boot_ns
from tidemill.model.run import Completed
from tidemill.model.time import SECOND, Span
from tidemill.task.current import ControlledJob
from tidemill.worker.board import NO_RETRY, Board
from tidemill.worker.deadlines import Deadlines
from tidemill.worker.exchange import Exchange
from tidemill.worker.outcomes import Ending, Instead, refused_payload
from tidemill.worker.report import Report
from tidemill.worker.resolver import Resolver
from tidemill.worker.runners.apart import ApartRunner
from tidemill.worker.runners.loop import LoopRunner
from tidemill.worker.runners.thread import ThreadRunner
from tidemill.worker.runs import Run
from tidemill.worker.slots import Slots
from tidemill.worker.stops import Stops
from tidemill.worker.terms import TIMEOUT_LINEAGE, TermsBook

UNKNOWN_TASK_DELAY: Span = 10 * SECOND
"""Jobs of a task that is not known here are given back for this long: another worker may know it, or a
newer version of this one."""


class Executor:
    """Takes runs through the pipeline. `wire` completes it: its parts know one another."""

    loop: LoopRunner
    thread: ThreadRunner
    apart: ApartRunner | None
    slots: Slots
    stops: Stops
    deadlines: Deadlines
    resolver: Resolver

    def __init__(self, terms: TermsBook, exchange: Exchange, board: Board, report: Report) -> None:
        self._terms = terms
        self._exchange = exchange
        self._board_start, self._board_ended = board.start, board.ended
        self._report = report
        self._tells_all = report.verbose

    def begin(self, run: Run) -> None:
        """Resolve, decode, and hand it to its runner."""
        run.running = ControlledJob(run.job, run, run)
        terms = self._terms.of(run.job)
        if terms is None:
            self._unknown(run)
            return
        run.terms = terms
        if run.job.suspect or terms.runs_in == "process":
            self._begin_apart(run)
            return
        if self._decode(run):
            if self.deadlines.asleep:
                self.deadlines.wake()
            if terms.runs_in == "loop":
                self.loop.begin(run)
            else:
                self.thread.begin(run)

    def start(self, run: Run) -> None:
        """Its function is about to be called in this process. From any thread."""
        self.begin_clock(run)
        self._board_start(
            run.row, started_ns=run.started_ns, deadline_ns=run.deadline_ns, retry_in=run.retry_in
        )

    def begin_clock(self, run: Run) -> None:
        """Timeouts run from here."""
        run.started_ns = now_ns = boot_ns()
        timeout = run.job.timeout or run.terms.timeout
        if timeout is not None:
            run.deadline_ns = run.due_ns = now_ns + 1_000 * timeout
            retry_in = run.terms.retry_in(run.job, TIMEOUT_LINEAGE)
            run.retry_in = NO_RETRY if retry_in is None else retry_in

    def watch(self, run: Run) -> None:
        """Keep its deadline. (A thread's is found by the next sweep: its code has only a flag to see.)"""
        if run.due_ns:
            self.deadlines.watch(run.due_ns)

    def end(self, run: Run, ending: Ending) -> None:
        """Settle, free the slot, report."""
        now_ns = boot_ns()
        if run.started_ns:
            run.ran = (now_ns - run.started_ns) // 1_000
            self._board_ended(run.row)  # not stuck, however long its outcome waits for the engine
        run.handle = None
        if run.stuck:
            self.stops.ended(run)
        completing = run.running.completing
        del run.running  # it knows the run: a circle would wait for the garbage collector
        if completing:
            self.resolver.begin(run, ending)
            self.slots.leave(run, now_ns)
            return
        if type(ending) is Completed:
            run.outcome = ending
            self._exchange.settle(run)
        else:
            self._settle(run, ending)
        self.slots.leave(run, now_ns)
        self._tell_if_needed(run, ending, now_ns)

    def go_on(self, run: Run, ending: Ending) -> None:
        """No transaction has decided about it: it ends as any other."""
        self._settle(run, ending)
        self._tell_if_needed(run, ending, boot_ns())

    def _tell_if_needed(self, run: Run, ending: Ending, now_ns: int) -> None:
        if self._tells_all or type(ending) is not Completed or 0 < run.deadline_ns < now_ns:
            self._tell(run, ending)

    def _decode(self, run: Run) -> bool:
        job = run.job
        try:
            run.args, run.kwargs = run.terms.decode(job.codec, job.body)
        except Exception as error:  # BadPayload, or whatever a type of the user's raises while it is built
            self.end(run, refused_payload(error))
            return False
        return True

    def _begin_apart(self, run: Run) -> None:
        """In another process. A suspect's arguments are not even decoded here."""
        run.apart = True
        if self.apart is None:
            self._report.no_processes(run)
            self._give_back(run, UNKNOWN_TASK_DELAY)
        elif run.job.suspect or self._decode(run):
            self.deadlines.wake()
            self.apart.begin(run)

    def _unknown(self, run: Run) -> None:
        self._report.unknown_task(run)
        self._give_back(run, UNKNOWN_TASK_DELAY)

    def _give_back(self, run: Run, delay: Span) -> None:
        self._exchange.give_back(run, delay)
        self.slots.leave(run, boot_ns())

    def _settle(self, run: Run, ending: Ending) -> None:
        if ending is Instead.GIVE_BACK:
            self._exchange.give_back(run)
        elif ending is Instead.DROP:
            self._exchange.forget(run)
        else:
            run.outcome = ending
            self._exchange.settle(run)

    def _tell(self, run: Run, ending: Ending) -> None:
        self._report.ended(run, ending)
