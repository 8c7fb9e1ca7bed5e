"""The exchange: the one who talks to the engine about runs. Outcomes there, jobs back, in one trip.

**One trip at a time.** A trip takes every outcome that is waiting and claims as many jobs as there is room
for, in one call. While it is on its way the next outcomes collect. So the first event of a quiet period goes
at once, and under load batches form by themselves, as large as the engine is slow. It also keeps the rule
that a claimant has one claim in flight.

**Authority.** A run is ours from the claim's answer until its settle or release was answered. In between it
is in the held table, from which the supervisor makes its heartbeats. So a run leaves the held table only
after the answer, and a claim's number is written there only after all its jobs are. An outcome that is
answered `STALE` came too late: another run has the job. It is reported and dropped.

**When the answer is lost** (`EngineUnavailable` means "unknown") the same call is made again, with the same
outcomes and the same claim number, until it is answered: the engine tells a repeat from a second claim. Only
the claim's size may change: while we drain, or while our lease is not fresh, the repeat claims nothing new,
and still learns what its number took. Meanwhile running code goes on, and its outcomes wait here.

**When a claim is refused**: `MemberGone` passes with the next heartbeat. `ClaimantRetired` means that we were
declared dead, and ends this worker.

**In a drain** nothing is claimed. The loop ends when nothing runs and everything is answered. It gives up on
an engine that does not answer for a while (`until_answered`): jobs whose outcome the engine did not get run
again elsewhere.
"""

from collections.abc import Awaitable, Callable

from tidemill.engine.boot import boot_ns
from tidemill.engine.protocol import JobsFacet
from tidemill.model.errors import BadInput, Refused
from tidemill.model.jobs.run import Answer, Claim, ClaimRequest, Failed, Settlement
from tidemill.model.schedules.firing import then_of
from tidemill.model.time import Instant
from tidemill.task.failures import failure_of
from tidemill.worker.claiming.claim_timing import ClaimTiming
from tidemill.worker.claiming.engine_clock import EngineClock
from tidemill.worker.claiming.run_sums import RunSums
from tidemill.worker.claiming.slots import Slots
from tidemill.worker.claiming.unsettled import Unsettled
from tidemill.worker.claiming.until_answered import GaveUp, UntilAnswered
from tidemill.worker.moments import Moments
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.report import Report
from tidemill.worker.running.notes import Notebook
from tidemill.worker.running.run import Run


class Exchange:
    """Trips to the engine."""

    def __init__(
        self,
        jobs: JobsFacet,
        held_table: HeldTable,
        notebook: Notebook,
        unsettled: Unsettled,
        slots: Slots,
        sums: RunSums,
        claims: ClaimTiming,
        until_answered: UntilAnswered,
        moments: Moments,
        report: Report,
    ) -> None:
        self._jobs = jobs
        self._held_table = held_table
        self._notebook = notebook
        self._unsettled = unsettled
        self._slots = slots
        self._sums = sums
        self._claims = claims
        self._until_answered = until_answered
        self._moments = moments
        self._report = report
        self._clock = EngineClock()
        self._first: Callable[[], Awaitable[None]] | None = None

    def first(self, call: Callable[[], Awaitable[None]]) -> None:
        """Make this call before the next trip."""
        self._first = call
        self._unsettled.wakeup.wake()

    # The loop

    async def run(self) -> None:
        """Trips, until drained. `ClaimantRetired` and `EngineClosed` end it at once."""
        try:
            while not self._over():
                await self._unsettled.wakeup.wait(self._patience())
                await self._trip()
        except GaveUp:
            return

    def _over(self) -> bool:
        return self._unsettled.waits_for_answers_only() and not len(self._unsettled)

    def _patience(self) -> float | None:
        """How long to wait for a wakeup; 0: there is something to do."""
        unsettled = self._unsettled
        if unsettled.ended or unsettled.releases:
            return 0
        return None if unsettled.draining else self._claims.patience()

    async def _trip(self) -> None:
        if (first := self._first) is not None:
            self._first = None
            await self._until_answered(first)
        unsettled = self._unsettled
        if unsettled.releases:
            await self._release()
        if self._slots.buffer:  # they wait for a fresh lease
            self._slots.refill(boot_ns())
        ended = unsettled.take_ended()
        request = self._claims.request(anyway=bool(ended))
        if ended:
            await self._settle(ended, request)
        elif request is not None:
            await self._claim(request)

    # Jobs come

    async def _claim(self, request: ClaimRequest) -> None:
        began_ns, repeated = boot_ns(), self._claims.repeated
        try:
            claim = await self._until_answered(lambda: self._jobs.claim(repeated(request)))
        except Refused as refused:
            self._refuse(refused)
        else:
            self._receive(request, claim, began_ns)

    def _receive(self, request: ClaimRequest, claim: Claim, began_ns: int) -> None:
        """Hold the jobs that came, record that the claim is answered, and let them run."""
        hold, notebook = self._held_table.hold, self._notebook
        runs = [Run(job, hold(job.id, job.fence), notebook) for job in claim.jobs]
        received_ns = boot_ns()
        self._claims.answered(request, claim, took_s=(received_ns - began_ns) / 1e9)
        self._clock.learn(claim.now, began_ns, received_ns)
        if runs:
            self._sums.claimed(claim.jobs, claim.now)
            self._set_starts(claim.now, runs)
            self._moments.note("claimed", len(runs))
            self._slots.admit(runs)
        elif not self._slots.active:
            self._moments.note("idle")

    def _set_starts(self, now: Instant, runs: list[Run]) -> None:
        """When those under a rate start, by our own clock."""
        for run in runs:
            job = run.job
            if job.start_within is not None:
                run.start_ns = self._clock.about_ns(now + job.start_in)
                last = self._clock.surely_before_ns(now + job.start_in + job.start_within)
                run.start_by_ns = max(1, last)

    def _refuse(self, refused: Refused) -> None:
        self._report.claim_refused(refused)
        self._moments.note("not granted")
        self._claims.refused(refused)

    # Outcomes go

    async def _settle(self, ended: list[Run], request: ClaimRequest | None) -> None:
        await self._write_notes(ended)
        began_ns, repeated = boot_ns(), self._claims.repeated
        settlements = [_settlement(run) for run in ended]
        self._slots.ahead.ended(ended)
        self._sums.ended(ended)
        try:
            settled = await self._until_answered(
                lambda: self._jobs.settle(settlements, claim=request and repeated(request))
            )
        except BadInput:
            await self._settle_one_by_one(ended)
            return
        self._answered(ended, settled.answers)
        if request is not None and settled.claim is not None:
            self._receive(request, settled.claim, began_ns)
        elif settled.refused is not None:
            self._refuse(settled.refused)

    async def _settle_one_by_one(self, ended: list[Run]) -> None:
        """One of them cannot be stored: find it, and record why. (The claim was not made.)"""
        for run in ended:
            try:
                answers = await self._settle_alone(run)
            except BadInput as its_own:
                self._report.bad_outcome(run, its_own)
                run.outcome = Failed(failure=failure_of(its_own), retry_in=None)
                answers = await self._settle_alone(run)
            self._answered([run], answers)

    async def _settle_alone(self, run: Run) -> list[Answer]:
        settlement = _settlement(run)
        return (await self._until_answered(lambda: self._jobs.settle([settlement]))).answers

    def _answered(self, ended: list[Run], answers: list[Answer]) -> None:
        let_go, stale, refused = self._held_table.let_go, Answer.STALE, 0
        for run, answer in zip(ended, answers, strict=True):
            let_go(run.row)
            if answer is stale:
                refused += 1
                self._report.refused(run)
        self._unsettled.settled(len(ended), recorded=len(ended) - refused)
        if refused:
            self._moments.note("refused", refused)
        self._moments.note("settled", len(ended))

    async def _release(self) -> None:
        """Release runs: a trip of its own."""
        batch = self._unsettled.take_releases()
        await self._write_notes([run for run, _ in batch])
        releases = [release for _, release in batch]
        await self._until_answered(lambda: self._jobs.release(releases))
        self._unsettled.release_answered(batch)
        self._moments.note("released", len(batch))

    async def _write_notes(self, runs: list[Run]) -> None:
        """Write the notes of these runs before their fence is used up."""
        fences = [run.fence for run in runs if run.page is not None]
        if fences:
            await self._until_answered(lambda: self._notebook.flush(fences))
            for fence in fences:
                self._notebook.close(fence)


def _settlement(run: Run) -> Settlement:
    """Its outcome, and with it the next time of the interval that it is a run of."""
    job, outcome = run.job, run.outcome
    then = None if job.schedule is None else then_of(job.schedule, job.headers, outcome)
    return Settlement(id=job.id, fence=run.fence, outcome=outcome, ran=run.ran, then=then)
