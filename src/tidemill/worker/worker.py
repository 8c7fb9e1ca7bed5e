"""One worker: one claimant, one event loop, its slots, and everything that serves them.

    engine <--- exchange ---> slots ---> pipeline ---> runners (loop, thread, process)
                   ^                                          |
                   +--- unsettled <--- endings <--- steps ----+

The constructor is the map: each part gets the parts that it calls. Two values are made first, because all
parts share them: the runs that are active, and those that are not settled. A run knows the slots that it has
to leave.

The worker sends no heartbeats. Its supervisor does (or, embedded, a thread), so that a job that blocks this
loop does not cost the lease. What the heartbeats learn comes in by `stop_requested`, `lost` and
`heartbeat_answered`. What they need to know is in the held table.

**The end.** `drain` claims no more jobs, releases what waits, and lets running jobs finish. At its deadline
every running job is told to stop, and is released as soon as its code has ended. `DRAIN_GRACE_S` later the
worker leaves without those whose code has not ended. They stay in the held table: only the end of this
process ends them, and only then may others have them.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from tidemill.engine.protocol import Engine
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Fence
from tidemill.model.jobs.run import Stopped
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.stats.batch import StatsRow
from tidemill.task.catalogue import publish, publish_schedules
from tidemill.task.registry import Registry
from tidemill.worker.claiming.claim_size import ClaimSize
from tidemill.worker.claiming.claim_timing import ClaimTiming
from tidemill.worker.claiming.exchange import Exchange
from tidemill.worker.claiming.listener import WakeupListener
from tidemill.worker.claiming.options_watch import OptionsWatch
from tidemill.worker.claiming.run_sums import RunSums
from tidemill.worker.claiming.shares import HEARTBEATS, watch_members
from tidemill.worker.claiming.slots import Slots
from tidemill.worker.claiming.unknown_tasks import UnknownTasks
from tidemill.worker.claiming.unsettled import Unsettled
from tidemill.worker.claiming.until_answered import GaveUp, UntilAnswered
from tidemill.worker.config import WorkerConfig
from tidemill.worker.member.messages import Drained
from tidemill.worker.moments import Moments
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.process.loop_watch import LoopWatch
from tidemill.worker.report import Report
from tidemill.worker.running.endings import Endings
from tidemill.worker.running.in_process import InProcessRunner, Processes
from tidemill.worker.running.in_thread import ThreadRunner
from tidemill.worker.running.in_transaction import TransactionOutcomes
from tidemill.worker.running.notes import Notebook
from tidemill.worker.running.on_loop import LoopRunner
from tidemill.worker.running.pipeline import Pipeline
from tidemill.worker.running.run import Run
from tidemill.worker.running.run_steps import RunSteps
from tidemill.worker.running.stopping import Stopping
from tidemill.worker.running.task_rules import TaskRulesBook

DRAIN_GRACE_S = 1.0
"""How long after the drain's deadline the worker leaves without what does not stop. SIGKILL comes after half
of it."""


class Worker:
    """Made and used on one loop."""

    def __init__(
        self,
        engine: Engine,
        registry: Registry,
        config: WorkerConfig,
        *,
        member: bytes,
        claimant: bytes,
        held_table: HeldTable,
        processes: Processes | None,
        takes_suspects: bool,
        supervised: bool = True,
        moments: Moments | None = None,
    ) -> None:
        """`supervised`: a supervisor ends this process when a job in it is stuck."""
        self._engine = engine
        self._registry = registry
        self._config = config
        self._queues = config.queues or registry.queue_names()
        self._loop = asyncio.get_running_loop()
        self._timers: list[asyncio.TimerHandle] = []
        self._drained_from: int | None = None
        self._over = False
        self.moments = moments or Moments()
        self._report = report = Report()
        active: dict[Fence, Run] = {}
        self._notebook = notebook = Notebook(engine.jobs, report.notes_lost, engine.transactions)
        self._sums = sums = RunSums()
        self._unsettled = unsettled = Unsettled(active, held_table, notebook, self.moments, report, sums)
        self._until_answered = until_answered = UntilAnswered(
            self.moments, report, leaving=unsettled.waits_for_answers_only
        )
        self._watch = LoopWatch(held_table, active, report)
        self._stops = stops = Stopping(active, held_table, config, report, self.moments, processes)
        endings = Endings(unsettled, report)
        self._resolver = resolver = TransactionOutcomes(
            engine.transactions, unsettled, until_answered, notebook, report, go_on=endings.go_on
        )
        steps = RunSteps(held_table, stops, unsettled, endings, resolver)
        self._threads = ThreadRunner(steps, config.slots)
        unknown = UnknownTasks(registry)
        pipeline = Pipeline(
            TaskRulesBook(registry),
            steps,
            stops.deadlines,
            unsettled,
            unknown,
            report,
            loop=LoopRunner(steps),
            thread=self._threads,
            apart=None
            if processes is None
            else InProcessRunner(steps, processes, engine.jobs, until_answered),
        )
        self._slots = slots = Slots(
            config.slots, held_table, config.lease_s, active, begin=pipeline.begin, release=unsettled.release
        )
        claim_size = ClaimSize(self._queues, registry)
        self._shares = claim_size.shares
        self._options = OptionsWatch(engine, lambda options: self._put_in_force(claim_size, options))
        self._claims = ClaimTiming(
            held_table,
            slots,
            stops,
            claim_size,
            unknown,
            take_claim_soon=unsettled.take_claim_soon,
            member=member,
            claimant=claimant,
            poll_s=config.poll_s,
            takes_suspects=takes_suspects,
            supervised=supervised,
        )
        self._exchange = Exchange(
            engine.jobs,
            held_table,
            notebook,
            unsettled,
            slots,
            sums,
            self._claims,
            until_answered,
            self.moments,
            report,
        )

    async def run(self) -> Drained:
        """Work until drained. `ClaimantRetired` or `EngineClosed`: it cannot go on."""
        self._watch.start()
        try:
            await self._until_answered(self._publish)
            await self._work()
        except GaveUp:
            pass  # drained before the engine ever answered
        finally:
            self._stop()
        unsettled = self._unsettled
        finished = unsettled.finished - (self._drained_from or 0)
        self._report.drained(finished, unsettled.released, len(self._slots.active), len(unsettled))
        self.moments.note("drained")
        return Drained(finished=finished, released=unsettled.released)

    def drain(self, timeout_s: float | None) -> None:
        """Claim no more, and end when nothing runs. What still runs at the deadline is stopped and released.
        None: there is no deadline."""
        if self._drained_from is None:
            self._drained_from = self._unsettled.finished
            self._report.draining(len(self._slots.active), timeout_s)
            self._slots.close()
        self._unsettled.drain()
        self._forget_timers()
        if timeout_s is not None:
            self._after(timeout_s, self._deadline)

    def hurry(self) -> None:
        """The deadline of the drain is now."""
        self.drain(0)

    def stop_requested(self, runs: Iterable[tuple[JobId, Fence]]) -> None:
        """A stop of these runs was requested. What has not started never starts."""
        if self._over:  # nothing would stop them, nor carry an outcome
            return
        for _, fence in runs:
            run = self._slots.active.get(fence)
            if run is not None:
                self._stops.request_stop(run)
            elif (waiting := self._slots.buffer.find(fence)) is not None:
                self._slots.buffer.remove(waiting)
                waiting.outcome = Stopped()
                self._unsettled.settle(waiting)

    def lost(self, fences: Iterable[Fence]) -> None:
        """These belong to others now."""
        if self._over:
            return
        for fence in fences:
            run = self._slots.active.get(fence)
            if run is not None:
                self._stops.lose(run)
            elif (waiting := self._slots.buffer.find(fence)) is not None:
                self._slots.buffer.remove(waiting)
                self._unsettled.forget(waiting)

    def heartbeat_answered(self, ok: bool, options: int = 0) -> None:
        """A heartbeat was answered, or not. The held table has its moment. After an outage claims go on from
        here. `options`: another number if the options of queues have changed."""
        if ok:
            self._options.heartbeat_answered(options)
        if ok and self._claims.heartbeat_answered():
            self._unsettled.claim_soon()

    def take_statistics(self) -> list[StatsRow]:
        """How long jobs waited and ran since this was last called."""
        return self._sums.take()

    def publish_again(self) -> None:
        """The engine may have forgotten tasks, queues and schedules: publish them again, before the next
        claim."""
        if not self._over:
            self._exchange.first(self._publish)

    def abandon(self) -> None:
        """Everything that runs belongs to others now, and this worker has ended: stop what can be stopped."""
        for run in list(self._slots.active.values()):
            self._stops.abandon(run)

    def when_over(self, call: Callable[[], None]) -> None:
        """For a worker that has ended: call this when no run is left and the held table is not used any more.
        That is now, or when the last run has ended."""
        self._slots.when_empty(call)

    @property
    def running(self) -> int:
        """How many runs have not ended."""
        return len(self._slots.active)

    async def _publish(self) -> None:
        """Publish what the code declares. A repeat changes nothing."""
        config = self._config
        await publish(self._engine, self._registry, source=config.source, began=config.began)
        await publish_schedules(self._engine, self._registry, source=config.source, began=config.began)
        await self._options.read()
        self.moments.note("published")

    def _put_in_force(self, claim_size: ClaimSize, options: Mapping[str, QueueOptions]) -> None:
        claim_size.options_in_force(options)
        self._unsettled.claim_soon()

    async def _work(self) -> None:
        """Run the exchange, the listener and the watches of options and members until one of them ends."""
        exchange = self._loop.create_task(self._exchange.run(), name="exchange")
        options = self._loop.create_task(self._options.run(), name="options")
        listener = WakeupListener(
            self._engine, self._queues, self._unsettled.claim_soon, self._options.changed
        )
        listening = self._loop.create_task(listener.run(), name="listener")
        every_s = HEARTBEATS * self._config.heartbeat_s
        members = self._loop.create_task(watch_members(self._engine, self._shares, every_s), name="members")
        tasks = {exchange, listening, options, members}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in (members, options, listening, exchange):
                if task.done():
                    task.result()
        finally:
            listener.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _deadline(self) -> None:
        """Stop what runs; then leave."""
        self._stops.drain(kill=False)
        self._after(DRAIN_GRACE_S / 2, lambda: self._stops.drain(kill=True))
        self._after(DRAIN_GRACE_S, lambda: self._unsettled.drain(leave=True))

    def _after(self, delay_s: float, call: Callable[[], None]) -> None:
        self._timers.append(self._loop.call_later(delay_s, call))

    def _forget_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _stop(self) -> None:
        self._over = True
        self._slots.shut()  # first: a run that ends from now on must not make room for one that waits
        self._watch.stop()
        self._forget_timers()
        self._stops.deadlines.stop()
        self._resolver.stop()
        self._notebook.stop()
        self._threads.close()
