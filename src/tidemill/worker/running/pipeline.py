"""Running one job: a pipeline of small steps over one value, `Run`.

    resolve     which code, and under which rules        unknown: released, to stand aside
    decode      the arguments, by their annotations      bad: dead at once
    wait        for its moment, if it is under a rate    late: released
    start       the held table and the clock know of it  \\
    perform     the function is called                    > in its runner: loop, thread, process
    normalise   what it did becomes an outcome           /
    settle      the exchange gets it; the slot is free
    report      people read of it in the log

A step either passes the run on or ends it. Here are the first three; `run_steps` has those that a runner
takes, `endings` the last two.
"""

from tidemill.engine.boot import boot_ns
from tidemill.model.jobs.run import ReleaseReason
from tidemill.model.time import SECOND, Span
from tidemill.task.current import ControlledJob
from tidemill.worker.claiming.unknown_tasks import UnknownTasks
from tidemill.worker.claiming.unsettled import Unsettled
from tidemill.worker.report import Report
from tidemill.worker.running.deadlines import Deadlines
from tidemill.worker.running.in_process import InProcessRunner
from tidemill.worker.running.in_thread import ThreadRunner
from tidemill.worker.running.on_loop import LoopRunner
from tidemill.worker.running.outcomes import refused_payload
from tidemill.worker.running.run import Run
from tidemill.worker.running.start_times import StartTimes
from tidemill.worker.running.steps import Steps
from tidemill.worker.running.task_rules import TaskRulesBook

CANNOT_RUN_DELAY: Span = 10 * SECOND
"""What cannot run here, and cannot be named by a claim, is released for this long: another worker may take
it."""


class Pipeline:
    """Begins runs."""

    def __init__(
        self,
        rules: TaskRulesBook,
        steps: Steps,
        deadlines: Deadlines,
        unsettled: Unsettled,
        unknown: UnknownTasks,
        report: Report,
        *,
        loop: LoopRunner,
        thread: ThreadRunner,
        apart: InProcessRunner | None,
    ) -> None:
        """`apart`: None where there are no processes to run jobs in."""
        self._rules = rules
        self._steps = steps
        self._deadlines = deadlines
        self._unsettled = unsettled
        self._unknown_tasks = unknown
        self._report = report
        self._start_times = StartTimes()
        self._loop = loop
        self._thread = thread
        self._apart = apart

    def begin(self, run: Run) -> None:
        """Resolve, decode, and hand it to its runner."""
        run.running = ControlledJob(run.job, run, run)
        rules = self._rules.of(run.job)
        if rules is None:
            self._unknown(run)
            return
        run.rules = rules
        if run.job.suspect or rules.runs_in == "process":
            self._begin_apart(run)
            return
        if self._decode(run):
            if self._deadlines.asleep:
                self._deadlines.wake()
            begin = self._loop.begin if rules.runs_in == "loop" else self._thread.begin
            if run.start_by_ns:
                self._start_times.begin(run, begin)
            else:
                begin(run)

    def _decode(self, run: Run) -> bool:
        job = run.job
        try:
            run.args, run.kwargs = run.rules.decode(job.codec, job.body)
        except Exception as error:  # BadPayload, or whatever a type of the user's raises while it is built
            self._steps.end(run, refused_payload(error))
            return False
        return True

    def _begin_apart(self, run: Run) -> None:
        """In another process. A suspect's arguments are not even decoded here."""
        run.apart = True
        if self._apart is None:
            self._report.no_processes(run)
            self._release(run, "no process runner", CANNOT_RUN_DELAY)
        elif run.job.suspect or self._decode(run):
            self._deadlines.wake()
            self._apart.begin(run)

    def _unknown(self, run: Run) -> None:
        self._report.unknown_task(run)
        named = self._unknown_tasks.meet(run.job.task)
        self._release(run, "unknown task", None if named else CANNOT_RUN_DELAY)

    def _release(self, run: Run, reason: ReleaseReason, delay: Span | None) -> None:
        self._unsettled.release(run, reason, delay)
        run.slots.leave(run, boot_ns())
