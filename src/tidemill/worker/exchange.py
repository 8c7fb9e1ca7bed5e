"""The exchange: the one who talks to the engine about runs. Outcomes there, jobs back, in one trip.

**One trip at a time.** A trip takes every outcome that is waiting and asks for as many jobs as there is room
for, in one call. While it is on its way the next outcomes collect. So the first event of a quiet period goes
at once, and under load batches form by themselves, as large as the engine is slow. It also keeps the rule
that a claimant has one claim in flight.

**Authority.** A run is ours from the claim's answer until its settle or release was answered. In between it
is on the board, from which the supervisor beats; so it leaves the board only after the answer, and a claim's
number is written there only after all its jobs are. An outcome that is answered `STALE` came too late:
somebody else has the job. It is reported and dropped.

**When the answer is lost** (`EngineUnavailable` means "unknown") the same call is made again, with the same
outcomes and the same claim number, until it is answered: the engine tells a repeat from a second wish. Only
the claim's size may change: while we drain, or while our lease is not fresh, the repeat asks for nothing new,
and still learns what its number took. Meanwhile what runs goes on, and its outcomes wait here.

**When a claim is refused**: `MemberGone` passes with the next beat; `ClaimantRetired` means that we were
declared dead, and ends this worker.

**In a drain** nothing is claimed; the loop ends when nothing runs and everything is answered. An engine that
does not answer any more is left after a while (`insistence`); what it was not told will run again elsewhere.
"""

import asyncio
from collections.abc import Awaitable, Callable

from tidemill.engine.boot import boot_ns
from tidemill.engine.protocol import BATCH_LIMIT, Jobs
from tidemill.model.errors import BadInput, Refused
from tidemill.model.firing import then_of
from tidemill.model.run import Answer, Claim, ClaimRequest, Failed, Release, Settlement
from tidemill.model.time import Span
from tidemill.task.failures import failure_of
from tidemill.worker.bell import Bell
from tidemill.worker.board import Board
from tidemill.worker.claims import Claims
from tidemill.worker.insistence import Forsaken, Insistence
from tidemill.worker.moments import Moments
from tidemill.worker.notes import Notebook
from tidemill.worker.report import Report
from tidemill.worker.runs import Run
from tidemill.worker.slots import Slots


class Exchange:
    """Trips to the engine. `claims` and `slots` are set by whoever wires them."""

    claims: Claims
    slots: Slots

    def __init__(
        self, jobs: Jobs, board: Board, notebook: Notebook, moments: Moments, report: Report
    ) -> None:
        self._jobs = jobs
        self._board = board
        self._notebook = notebook
        self._moments = moments
        self._report = report
        self._bell = Bell()
        self._loop = asyncio.get_running_loop()
        self.insist = Insistence(moments, report, leaving=self._waits_for_answers_only)
        self._ended: list[Run] = []
        self._returned: list[tuple[Run, Span | None]] = []
        self._travelling = 0
        self._draining = self._leaving = False
        self._first: Callable[[], Awaitable[None]] | None = None
        self.unresolved = 0
        """Runs of which a transaction decides, and nobody knows yet how."""
        self.finished = 0
        """Outcomes that were recorded."""
        self.released = 0
        """Runs that had begun and were given back."""

    # For those who run jobs. All on the loop.

    def settle(self, run: Run) -> None:
        """It has ended; `run.outcome` says how."""
        self._ended.append(run)
        if not self._bell.rung:
            self._bell.ring()

    def give_back(self, run: Run, delay: Span | None = None) -> None:
        """Release it."""
        self._returned.append((run, delay))
        self._bell.ring()

    def forget(self, run: Run) -> None:
        """It belongs to somebody else."""
        self._let_go(run)
        self._bell.ring()

    def recorded(self, run: Run) -> None:
        """Its outcome is in the engine already."""
        self._let_go(run)
        self.finished += 1
        self._moments.note("settled")
        self.look()  # its permits are free, its children may be ready

    def refused(self, run: Run) -> None:
        """Its outcome was not wanted: somebody else has the job."""
        self._report.refused(run)
        self._moments.note("refused")
        self._moments.note("settled")
        self.forget(run)

    def leaves_without(self) -> bool:
        """Whether nothing but answers keeps this worker from its end."""
        return self._waits_for_answers_only()

    def resolved(self) -> None:
        """One less of those."""
        self.unresolved -= 1
        self._bell.ring()

    def look(self) -> None:
        """There may be something to claim, or the lease is fresh again."""
        self.claims.soon()
        self._bell.ring()

    def drain(self, *, leave: bool = False) -> None:
        """Claim no more, and end when everything is answered; `leave`: without those that still run."""
        self._draining = True
        self._leaving = self._leaving or leave
        self._bell.ring()

    @property
    def unsettled(self) -> int:
        """Runs whose end the engine has not answered."""
        return len(self._ended) + len(self._returned) + self._travelling + self.unresolved

    def first(self, call: Callable[[], Awaitable[None]]) -> None:
        """Make this call before anything else."""
        self._first = call
        self._bell.ring()

    # The loop

    async def run(self) -> None:
        """Trips, until drained. `ClaimantRetired` and `EngineClosed` end it at once."""
        try:
            while not self._over():
                await self._bell.wait(self._patience())
                await self._trip()
        except Forsaken:
            return

    def _over(self) -> bool:
        return self._waits_for_answers_only() and not self.unsettled

    def _waits_for_answers_only(self) -> bool:
        """Whether nothing but the engine keeps this worker from its end."""
        return self._draining and (self._leaving or not self.slots.active)

    def _patience(self) -> float | None:
        """How long to wait for the bell; 0: there is something to do."""
        if self._ended or self._returned:
            return 0
        return None if self._draining else self.claims.patience()

    async def _trip(self) -> None:
        if (first := self._first) is not None:
            self._first = None
            await self.insist(first)
        if self._returned:
            await self._release()
        if self.slots.buffer:  # they wait for a fresh lease
            self.slots.refill(boot_ns())
        ended = self._ended[:BATCH_LIMIT]
        del self._ended[:BATCH_LIMIT]
        self._travelling = len(ended)
        request = self.claims.request(anyway=bool(ended))
        if ended:
            await self._settle(ended, request)
        elif request is not None:
            await self._claim(request)

    # Jobs come

    async def _claim(self, request: ClaimRequest) -> None:
        began, repeated = self._loop.time(), self.claims.repeated
        try:
            claim = await self.insist(lambda: self._jobs.claim(repeated(request)))
        except Refused as refused:
            self._refuse(refused)
        else:
            self._receive(request, claim, began)

    def _receive(self, request: ClaimRequest, claim: Claim, began: float) -> None:
        """Hold what came, say that the answer is here, let it run."""
        hold, notebook = self._board.hold, self._notebook
        runs = [Run(job, hold(job.id, job.fence), notebook) for job in claim.jobs]
        self.claims.answered(request, claim, took_s=self._loop.time() - began)
        if runs:
            self._moments.note("claimed", len(runs))
            self.slots.admit(runs)
        elif not self.slots.active:
            self._moments.note("idle")

    def _refuse(self, refused: Refused) -> None:
        self._report.claim_refused(refused)
        self._moments.note("not granted")
        self.claims.refused(refused)

    # Outcomes go

    async def _settle(self, ended: list[Run], request: ClaimRequest | None) -> None:
        await self._write_notes(ended)
        began, repeated = self._loop.time(), self.claims.repeated
        settlements = [_settlement(run) for run in ended]
        self.slots.ahead.ended(ended)
        try:
            settled = await self.insist(
                lambda: self._jobs.settle(settlements, claim=request and repeated(request))
            )
        except BadInput:
            await self._settle_one_by_one(ended)
            return
        self._answered(ended, settled.answers)
        if request is not None and settled.claim is not None:
            self._receive(request, settled.claim, began)
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
        return (await self.insist(lambda: self._jobs.settle([settlement]))).answers

    def _answered(self, ended: list[Run], answers: list[Answer]) -> None:
        let_go, stale, refused = self._board.let_go, Answer.STALE, 0
        for run, answer in zip(ended, answers, strict=True):
            let_go(run.row)
            if answer is stale:
                refused += 1
                self._report.refused(run)
        self._travelling -= len(ended)
        self.finished += len(ended) - refused
        if refused:
            self._moments.note("refused", refused)
        self._moments.note("settled", len(ended))

    async def _release(self) -> None:
        """Give back: a trip of its own."""
        batch = self._returned[:BATCH_LIMIT]
        del self._returned[:BATCH_LIMIT]
        self._travelling = len(batch)
        await self._write_notes([run for run, _ in batch])
        releases = [Release(id=run.job.id, fence=run.fence, delay=delay) for run, delay in batch]
        await self.insist(lambda: self._jobs.release(releases))
        for run, _ in batch:
            self._let_go(run)
            self.released += run.started_ns != 0
        self._travelling = 0
        self._moments.note("released", len(batch))

    async def _write_notes(self, runs: list[Run]) -> None:
        """What they noted is written before their fence is spent."""
        fences = [run.fence for run in runs if run.page is not None]
        if fences:
            await self.insist(lambda: self._notebook.flush(fences))
            for fence in fences:
                self._notebook.close(fence)

    def _let_go(self, run: Run) -> None:
        self._board.let_go(run.row)
        self._notebook.close(run.fence)


def _settlement(run: Run) -> Settlement:
    """Its outcome, and with it the next time of the interval that it is a run of."""
    job, outcome = run.job, run.outcome
    then = None if job.schedule is None else then_of(job.schedule, job.headers, outcome)
    return Settlement(id=job.id, fence=run.fence, outcome=outcome, ran=run.ran, then=then)
