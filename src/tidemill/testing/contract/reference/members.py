"""The reference for members: heartbeats, and what becomes of the jobs of those who stop heartbeating."""

from collections.abc import Sequence
from typing import NamedTuple

from tidemill.model.jobs.crash import after_claimant_lost, after_member_lost
from tidemill.model.jobs.job import Fence, JobState
from tidemill.model.jobs.run import LostRun
from tidemill.model.member import (
    ClaimantHeartbeat,
    Health,
    MemberInfo,
    StopRequest,
    health,
    may_sweep,
    steady_after_heartbeat,
)
from tidemill.model.time import Instant
from tidemill.testing.contract.reference.records import ClaimantRecord, ReferenceJob, ReferenceMember
from tidemill.testing.contract.reference.store import ReferenceStore, Seen


class ReceivedHeartbeat(NamedTuple):
    """What a heartbeat must answer, beside its number."""

    new: bool
    lost: set[Fence]
    stop_requests: set[StopRequest]


class Swept(NamedTuple):
    """What a reclaim must answer."""

    entitled: bool
    jobs: int
    gone: list[str]


class ReferenceMembers:
    """Members, their claimants, and their lost runs."""

    def __init__(self, store: ReferenceStore) -> None:
        self._store = store

    def heartbeat(
        self, info: MemberInfo, claimants: Sequence[ClaimantHeartbeat], *, now: Instant
    ) -> ReceivedHeartbeat:
        known = self._store.members.get(info.id)
        if known is None:
            self._store.members[info.id] = ReferenceMember(info, now, now, now)
        else:
            known.steady_since = steady_after_heartbeat(info, known.heartbeat_at, known.steady_since, now)
            known.info, known.heartbeat_at = info, now
        lost = set[Fence]()
        for heartbeat in claimants:
            held = self._store.held_by(heartbeat.claimant)
            lost |= set(heartbeat.held) - {job.fence for job in held}
            for job in held:
                if job.number <= heartbeat.answered_through and job.fence not in heartbeat.held:
                    self._store.release_run(job, now)
        stops = {
            StopRequest(job.id, job.fence or 0)
            for job in self._store.held_by_member(info.id)
            if job.cancel_requested
        }
        return ReceivedHeartbeat(known is None, lost, stops)

    def leave(self, member: bytes, *, now: Instant) -> int:
        held = self._store.held_by_member(member)
        for job in held:
            self._store.release_run(job, now)
        self._forget(member, now)
        return len(held)

    def retire(self, claimant: bytes, lost_runs: Sequence[LostRun], *, now: Instant) -> int:
        held = self._store.held_by(claimant)
        for job in held:
            lost = next((lost for lost in lost_runs if (lost.id, lost.fence) == (job.id, job.fence)), None)
            if lost is None:
                self._store.release_run(job, now)
                continue
            self._store.note_failure(job, "crash" if lost.verdict == "crash" else "lost", now)
            after = after_claimant_lost(
                lost.verdict,
                suspect=job.suspect,
                lost_runs=job.lost_runs,
                crashes=job.crashes,
                cancel_requested=job.cancel_requested,
            )
            self._store.lose(job, after, now)
        record = self._store.claimants.setdefault(claimant, ClaimantRecord(b""))
        record.retired_at = now
        return len(held)

    def reclaim(self, member: bytes, *, limit: int, now: Instant, seen: Seen, dropped: list[str]) -> Swept:
        """Which jobs a bounded sweep takes is seen; so is whether a member whose last job fell on the
        bound was `dropped` already."""
        sweeper = self._store.members.get(member)
        if sweeper is None or not may_sweep(sweeper.info, sweeper.heartbeat_at, sweeper.steady_since, now):
            return Swept(entitled=False, jobs=0, gone=[])
        silent = [
            record
            for record in self._store.members.values()
            if health(record.info, record.heartbeat_at, now) is Health.GONE
        ]
        held = [job for record in silent for job in self._store.held_by_member(record.info.id)]
        taken = [job for job in held if not _still_runs(job, seen)]
        assert len(taken) == min(len(held), limit), f"{len(taken)} of {len(held)} jobs were reclaimed"
        for job in taken:
            self._lose_with_member(job, now)
        gone = []
        for record in silent:
            empty = not self._store.held_by_member(record.info.id)
            if empty and (len(taken) < limit or record.info.name in dropped):
                self._forget(record.info.id, now)
                gone.append(record.info.name)
        return Swept(entitled=True, jobs=len(taken), gone=sorted(gone))

    def _lose_with_member(self, job: ReferenceJob, now: Instant) -> None:
        after = after_member_lost(
            suspect=job.suspect,
            started=job.started_at is not None,
            lost_runs=job.lost_runs,
            crashes=job.crashes,
            cancel_requested=job.cancel_requested,
        )
        self._store.note_failure(job, "crash" if after.crashes > job.crashes else "lost", now)
        self._store.lose(job, after, now)

    def _forget(self, member: bytes, now: Instant) -> None:
        self._store.members.pop(member, None)
        for claimant in self._store.claimants.values():
            if claimant.member == member and claimant.retired_at is None:
                if claimant.last_number:
                    claimant.retired_at = now
                else:
                    claimant.maybe_retired = True


def _still_runs(job: ReferenceJob, seen: Seen) -> bool:
    shown = seen.get(job.id)
    return shown is not None and shown.state is JobState.RUNNING and shown.fence == job.fence
