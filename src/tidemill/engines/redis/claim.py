"""Taking jobs: what a claim sends, and what its answer tells."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from tidemill.engine.protocol import BATCH_LIMIT
from tidemill.engine.shared.checks import check_batch
from tidemill.engines.redis.call import Call
from tidemill.engines.redis.rows import Row, maybe_text
from tidemill.engines.redis.tail import read
from tidemill.model.errors import BadInput, ClaimantRetired, ClaimOutOfOrder, MemberGone, Refused
from tidemill.model.ids import check_id
from tidemill.model.retry import Retry
from tidemill.model.run import Claim, ClaimedJob, ClaimRequest

_retry = lru_cache(1_024)(msgspec.json.Decoder(Retry).decode)


def check(request: ClaimRequest) -> None:
    """Refuse before anything is done."""
    check_batch(len(request.ids or ()))
    check_batch(len(request.wants))
    for job_id in request.ids or ():
        check_id(job_id)
    if len({want.queue for want in request.wants}) != len(request.wants):
        raise BadInput("a claim names each queue once")
    if request.suspects < 0 or any(want.most is not None and want.most < 0 for want in request.wants):
        raise BadInput("a claim's bounds are 0 or more")
    if not 0 <= request.most <= BATCH_LIMIT:
        raise BadInput(f"a claim takes between 0 and {BATCH_LIMIT:,} jobs, not {request.most}")
    if request.number < 1:
        raise BadInput(f"claims are numbered from 1, not {request.number}")


def add_claim(call: Call, request: ClaimRequest, after: int) -> None:
    """Add a claim to a call, as `take.lua` reads it. `after`: its last number that brought jobs."""
    call.values["claim"] = {
        "number": request.number,
        "after": after,
        "wants": [(want.queue, -1 if want.most is None else want.most) for want in request.wants],
        "most": request.most,
        "suspects": min(request.suspects, request.most),
        "ids": None if request.ids is None else len(request.ids),
    }
    call.add(request.member, request.claimant, *(request.ids or ()))


def claim_of(request: ClaimRequest, answer: Sequence[Any]) -> Claim:
    """The claim that an answer tells of, or its refusal."""
    head, *rest = answer
    if isinstance(head, bytes):
        raise _refusal(head, request, rest[0])
    jobs = [_job(row) for row in rest[0]] if len(rest) == 1 else _plain_jobs(*rest)
    return Claim(jobs, None if head < 0 else head)


def _plain_jobs(
    fence: int, ids: Sequence[bytes], records: Sequence[bytes], apart: Sequence[bytes | None] | None
) -> list[ClaimedJob]:
    """Jobs as they were enqueued, at their first attempt."""
    jobs = [
        ClaimedJob(
            job_id, number, seq, task, queue, priority, 1, attempts, codec, body, headers, key, timeout,
            retry, at, at, 0, False, False, on_dead, schedule,
        )
        for number, job_id, (
            seq, at, body, headers,
            (task, queue, priority, codec, attempts, key, timeout, retry, on_dead, schedule),
        ) in zip(range(fence, fence + len(ids)), ids, read(records), strict=True)
    ]  # fmt: skip
    if apart is not None:
        for job, body in zip(jobs, apart, strict=True):
            if body is not None:
                job.body = body
    return jobs


def _refusal(kind: bytes, request: ClaimRequest, last: int) -> Refused:
    if kind == b"MemberGone":
        return MemberGone("this member is not registered, or was dropped after its lease: beat first")
    if kind == b"ClaimantRetired":
        return ClaimantRetired("this claimant was declared dead; start a new one")
    return ClaimOutOfOrder(f"claim {request.number} comes after claim {last} of the same claimant")


def _job(row: Row) -> ClaimedJob:
    (
        job_id, fence, seq, task, queue, priority, attempt, max_attempts, codec, body, headers, key, timeout,
        retry, created_at, ready_at, crashes, suspect, limited, on_dead, schedule,
    ) = row  # fmt: skip
    return ClaimedJob(
        job_id, fence, seq, task.decode(), queue.decode(), priority, attempt, max_attempts, codec, body,
        headers, maybe_text(key), timeout, None if retry is None else _retry(retry), created_at, ready_at,
        crashes, suspect == 1, limited == 1, maybe_text(on_dead), maybe_text(schedule),
    )  # fmt: skip
