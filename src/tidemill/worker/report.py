"""Every log message of a worker. Other modules say what happened; this one words it for people."""

import logging
import time

from tidemill.engine.boot import boot_ns
from tidemill.model.ids import show_id
from tidemill.model.jobs.run import Completed, Crashed, Failed
from tidemill.worker.running.notes import clip_line
from tidemill.worker.running.outcomes import Ending, Instead, SnoozedRun
from tidemill.worker.running.run import Run

log = logging.getLogger("tidemill.worker")

UNKNOWN_TASK_EVERY_S = 60.0
"""A task that is not known here is mentioned this often, however many of its jobs come by."""


class Report:
    """One worker's messages. Whether successes are logged is read once: a disabled `log.debug` for each of
    30,000 jobs a second would be 2% of the worker."""

    def __init__(self) -> None:
        self.verbose = log.isEnabledFor(logging.DEBUG)
        self._mentioned: dict[str, float] = {}
        self._late_runs: dict[str, int] = {}
        self._unreachable_since: float | None = None

    def ended(self, run: Run, ending: Ending) -> None:
        """A run has ended. One that simply completed is logged only if `verbose`. One that completed after
        its deadline, or was stuck, is always logged: its timeout did not hold, and its author should know."""
        name = _name(run)
        if isinstance(ending, Failed):
            failure = ending.failure
            then = "dead" if ending.retry_in is None else f"again in {ending.retry_in / 1e6:.1f} s"
            what = clip_line(f"{failure.error}: {failure.message}".splitlines()[0])
            log.warning("%s failed, %s: %s", name, then, what)
        elif isinstance(ending, Crashed):
            log.error("%s crashed its process: %s", name, ending.message)
        elif ending is Instead.RELEASE:
            log.info("%s is released", name)
        elif ending is Instead.LATE:
            self._late(run)
        elif isinstance(ending, SnoozedRun):
            log.info("%s snoozes for %.1f s", name, ending.delay / 1e6)
        elif ending is Instead.DROP:
            log.warning("%s belongs to another worker now and was stopped", name)
        elif self.verbose:
            log.debug("%s ended: %s", name, type(ending).__name__.lower())
        if run.stuck:
            log.warning("%s ended at last, %.1f s past its %s", name, _late_s(run), _deadline(run))
        elif isinstance(ending, Completed) and _late_s(run) > 0:
            log.warning("%s completed, but %.1f s past its %s", name, _late_s(run), _deadline(run))

    def _late(self, run: Run) -> None:
        """It came too late for its rate; at most once a minute for each queue."""
        queue, now = run.job.queue, time.monotonic()
        self._late_runs[queue] = self._late_runs.get(queue, 0) + 1
        if now - self._mentioned.get(f"late {queue}", -UNKNOWN_TASK_EVERY_S) >= UNKNOWN_TASK_EVERY_S:
            self._mentioned[f"late {queue}"] = now
            log.info(
                "%d runs in queue %r came too late for the permits of its rate and were released "
                "(such as %s): this process or the engine is slow for so short a window",
                self._late_runs.pop(queue),
                queue,
                _name(run),
            )

    def refused(self, run: Run) -> None:
        """The engine refused an outcome: another run has the job."""
        log.warning("the outcome of %s came too late and was refused", _name(run))

    def completed_itself(self, run: Run, ending: Ending) -> None:
        """Its own transaction has completed the job. What the code did after that changes nothing, but its
        author should know."""
        if isinstance(ending, Failed):
            what = clip_line(f"{ending.failure.error}: {ending.failure.message}".splitlines()[0])
            log.warning("%s completed in its transaction, and then failed: %s", _name(run), what)
        elif not isinstance(ending, Completed):
            log.warning("%s completed in its transaction, and was then stopped or lost", _name(run))
        elif self.verbose:
            log.debug("%s completed in its transaction", _name(run))

    def transaction_open(self, run: Run, for_s: float) -> None:
        """Its code has ended and left its transaction open."""
        log.warning(
            "%s called complete() and has ended, and its transaction is still open after %.0f s: commit or "
            "roll back before the function returns",
            _name(run),
            for_s,
        )

    def bad_outcome(self, run: Run, error: Exception) -> None:
        """The engine cannot store an outcome as it is."""
        log.error("the outcome of %s cannot be stored: %s", _name(run), error)

    def unknown_task(self, run: Run) -> None:
        """This app does not have the task; once a minute."""
        task, now = run.job.task, time.monotonic()
        if now - self._mentioned.get(task, -UNKNOWN_TASK_EVERY_S) >= UNKNOWN_TASK_EVERY_S:
            self._mentioned[task] = now
            log.warning(
                "no task %r here (job %s in queue %r): its jobs stand aside until a worker has it; "
                "is its module imported by the app?",
                task,
                show_id(run.job.id),
                run.job.queue,
            )

    def no_processes(self, run: Run) -> None:
        """This worker has no processes to run it in."""
        log.warning("%s must run in a process of its own, which this worker does not offer", _name(run))

    def stuck(self, run: Run) -> None:
        """It is past its deadline and cannot be stopped from here."""
        log.error("%s does not stop, %.1f s past its %s", _name(run), _late_s(run), _deadline(run))

    def loop_blocked(self, for_s: float, run: Run | None, where: str) -> None:
        """The loop does not answer; `run` is what it is busy with."""
        what = "something that is not a job" if run is None else _name(run)
        log.warning("the loop has not answered for %.1f s, blocked by %s, at %s", for_s, what, where)

    def loop_answers(self, silent_s: float, *, warned: bool) -> None:
        """It answers again. `warned`: that it was blocked has been logged."""
        if warned:
            log.warning("the loop answers again after %.1f s", silent_s)
        else:
            log.warning(
                "the loop was blocked for %.1f s, by code that held the GIL or by a stopped process", silent_s
            )

    def unreachable(self, error: Exception) -> None:
        """The engine does not answer. Logged once an outage."""
        if self._unreachable_since is None:
            self._unreachable_since = time.monotonic()
            log.warning("the engine cannot be reached, trying again: %s", error)

    def reachable(self) -> None:
        """It answers."""
        if self._unreachable_since is not None:
            gone_s = time.monotonic() - self._unreachable_since
            self._unreachable_since = None
            log.info("the engine is back after %.1f s", gone_s)

    def claim_refused(self, error: Exception) -> None:
        """The engine refused a claim."""
        log.warning("no claim was granted: %s", error)

    def notes_lost(self, error: Exception) -> None:
        """Progress or log lines could not be written."""
        log.warning("notes of running jobs were dropped: %s", error)

    def draining(self, running: int, timeout_s: float | None) -> None:
        """No more is taken."""
        limit = "until they end" if timeout_s is None else f"at most {timeout_s:g} s"
        log.info("draining: %d running, waiting %s", running, limit)

    def drained(self, finished: int, released: int, left: int, unsettled: int) -> None:
        """The end."""
        if left:
            log.warning("%d jobs still run and cannot be stopped", left)
        if unsettled:
            log.warning("%d outcomes could not be sent to the engine: those jobs will run again", unsettled)
        log.info("drained: %d finished meanwhile, %d handed back", finished, released)


def _name(run: Run) -> str:
    job = run.job
    return f"{job.task} {show_id(job.id)} (attempt {job.attempt}/{job.max_attempts})"


def _late_s(run: Run) -> float:
    """By how much it missed its deadline; 0: not at all, or it had none."""
    return max(0, boot_ns() - run.deadline_ns) / 1e9 if run.deadline_ns else 0.0


def _deadline(run: Run) -> str:
    """What set its deadline: a timeout, or the loss of its lease before that."""
    timeout = run.job.timeout or run.rules.timeout
    of_timeout = timeout is not None and run.deadline_ns >= run.started_ns + 1_000 * timeout
    return "timeout" if of_timeout else "lease"
