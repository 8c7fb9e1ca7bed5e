"""Who gives the random commands: members with their children, and what they know."""

from collections.abc import Iterable
from typing import Any

from tidemill.model.ids import JobId, id_at
from tidemill.model.jobs.job import Failure, Fence, NewJob
from tidemill.model.jobs.run import (
    Claim,
    ClaimRequest,
    Completed,
    Crashed,
    Failed,
    Outcome,
    Settlement,
    Stopped,
    Then,
    Want,
)
from tidemill.model.member import MemberInfo
from tidemill.model.time import SECOND, Instant
from tidemill.testing.contract.jobs.commands import THEN_PRIORITY

START: Instant = 1_800_000_000 * SECOND
MEMBERS = 3
CHILDREN = 2


class PlayedChild:
    """One claimant: what it has been answered, and what it believes to hold."""

    def __init__(self, script: "PlayedScript", member: int) -> None:
        self.member = member
        self._script = script
        self.respawn()

    def respawn(self) -> None:
        """A new claimant that knows nothing."""
        self.id = self._script.new_id()
        self.number = 0
        self.held: dict[Fence, JobId] = {}

    def receive(self, request: ClaimRequest, answer: Claim) -> None:
        """The answer to a claim arrived."""
        self.number = max(self.number, request.number)
        self.held.update((job.fence, job.id) for job in answer.jobs)

    def lose(self, fences: Iterable[Fence]) -> None:
        """It knows that it does not hold these any more."""
        for fence in fences:
            self.held.pop(fence, None)

    def forget_oldest(self) -> None:
        """As if the answer to a release had been lost."""
        self.lose(list(self.held)[:1])


class PlayedScript:
    """The clock, the players, and everything that was ever enqueued or claimed."""

    def __init__(self) -> None:
        self.now = START
        self._ids = 0
        self.jobs: list[NewJob] = []
        self.runs: list[tuple[JobId, Fence]] = []
        self.members: list[MemberInfo] = [self._new_member() for _ in range(MEMBERS)]
        self.children = [PlayedChild(self, member) for member in range(MEMBERS) for _ in range(CHILDREN)]

    @property
    def ids(self) -> list[JobId]:
        return [job.id for job in self.jobs]

    def new_id(self) -> JobId:
        """Not random: a script must run the same way twice."""
        self._ids += 1
        return id_at(START + self._ids * 1_000, self._ids.to_bytes(10, "big"))

    def token(self) -> bytes:
        return self.new_id()

    def _new_member(self) -> MemberInfo:
        member = self.new_id()
        return MemberInfo(id=member, name=f"host:{self._ids}", queues=("a", "b"), slots=4)

    def restart(self, number: int) -> None:
        """A new process group in place of one that died."""
        self.members[number] = self._new_member()
        for child in self.children_of(number):
            child.respawn()

    def children_of(self, number: int) -> list[PlayedChild]:
        return [child for child in self.children if child.member == number]

    def child(self, pick: int) -> PlayedChild:
        return self.children[pick % len(self.children)]

    def busy_child(self, pick: int) -> PlayedChild:
        """One that holds something, if any does."""
        busy = [child for child in self.children if child.held] or self.children
        return busy[pick % len(busy)]

    def job(self, pick: int) -> NewJob:
        return self.jobs[-1 - pick % len(self.jobs)]

    def new_jobs(self, batch: list[dict[str, Any]]) -> list[NewJob]:
        """The jobs of a batch; the picks of parents may point at earlier ones of the same batch."""
        return [self._new_job(dict(said)) for said in batch]

    def _new_job(self, said: dict[str, Any]) -> NewJob:
        # What becomes ready first when a parent expires in the same step is not fixed: such are no parents.
        possible = [job.id for job in self.jobs if job.expires is None]
        picks = said.pop("parents", [])
        unique = said.get("unique")
        if (
            unique is not None and unique.on_conflict == "replace"
        ):  # a job that expires is no parent: see above
            picks = []
            said.pop("expires", None)
        after = {possible[-1 - pick % len(possible)] for pick in picks} if possible else set()
        ahead = said.pop("ahead", None)
        at = None if ahead is None else self.now + ahead
        job_id = self.new_id()
        body = b'[["%d"],{}]' % self._ids
        job = NewJob(id=job_id, body=body, at=at, after=tuple(sorted(after)), **said)
        self.jobs.append(job)
        return job

    def claim_request(self, child: PlayedChild, said: dict[str, Any]) -> ClaimRequest:
        ids = said["ids"]
        return ClaimRequest(
            member=self.members[child.member].id,
            claimant=child.id,
            number=max(1, child.number - 1) if said["late"] else child.number + 1,
            wants=tuple(Want(queue, most) for queue, most in said["wants"]),
            most=said["most"],
            suspects=said["suspects"],
            ids=tuple({self.job(pick).id: None for pick in ids}) if ids and self.jobs else None,
            unknown=tuple(sorted(said["unknown"])),
        )

    def run_of(self, child: PlayedChild, pick: int, *, stale: bool) -> list[tuple[JobId, Fence]]:
        """A run that the child holds, or any run there ever was; none if there is none."""
        held = [(job_id, fence) for fence, job_id in child.held.items()]
        runs = self.runs if stale else held
        return [runs[-1 - pick % len(runs)]] if runs else []

    def settlements(self, child: PlayedChild, ended: list[dict[str, Any]]) -> list[Settlement]:
        return [
            Settlement(
                id=job_id,
                fence=fence,
                outcome=self._outcome(said),
                ran=said["ran"],
                then=self._then(said["then"]),
            )
            for said in ended
            for job_id, fence in self.run_of(child, said["run"], stale=said["stale"])
        ]

    def _outcome(self, said: dict[str, Any]) -> Outcome:
        error = ("builtins.OSError", "builtins.KeyError")[self._ids % 2]
        failure = Failure(error=error, message=f"no {self._ids}", traceback="here")
        match said["kind"]:
            case "completed":
                return Completed(result=b"%d" % self._ids)
            case "retried":
                return Failed(failure=failure, retry_in=said["retry_in"])
            case "failed":
                return Failed(failure=failure)
            case "crashed":
                return Crashed(message="signal 11")
            case _:
                return Stopped()

    def _then(self, queues: list[str] | None) -> Then | None:
        if not queues:
            return None
        jobs = [
            NewJob(id=self.new_id(), task="then", queue=queue, priority=THEN_PRIORITY) for queue in queues
        ]
        self.jobs += jobs
        return Then(jobs=tuple(jobs))
