"""Taking jobs: what a claim sends, and how its answer is read."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from tidemill.engine.shared.codes import refusal
from tidemill.engines.redis.db.call import ScriptCall
from tidemill.engines.redis.jobs.tail import read
from tidemill.engines.redis.read.rows import Row, maybe_text
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.run import Claim, ClaimedJob, ClaimRequest
from tidemill.model.queues.starts import StartRules, set_starts

STARTS = 1
"""After the jobs: when those under a rate start."""

_rules = lru_cache(1_024)(msgspec.json.Decoder(StartRules).decode)
_retry = lru_cache(1_024)(msgspec.json.Decoder(Retry).decode)


def add_claim(call: ScriptCall, request: ClaimRequest, after: int) -> None:
    """Add a claim to a call, as `take.lua` reads it. `after`: its last number that brought jobs."""
    call.values["claim"] = {
        "number": request.number,
        "after": after,
        "wants": [(want.queue, -1 if want.most is None else want.most) for want in request.wants],
        "most": request.most,
        "suspects": min(request.suspects, request.most),
        "ids": None if request.ids is None else len(request.ids),
        "unknown": request.unknown,
    }
    call.add(request.member, request.claimant, *(request.ids or ()))


def claim_of(request: ClaimRequest, answer: Sequence[Any]) -> Claim:
    """The claim in an answer, or its refusal."""
    head, *rest = answer
    if isinstance(head, bytes):
        raise refusal(head.decode(), request, rest[0])
    now, *found = rest
    if len(found) > STARTS + 1:
        jobs = _plain_jobs(*found)
    else:
        jobs = [_job(row) for row in found[0]]
        set_starts(
            jobs, {name.decode(): (_rules(rules), pressure) for name, rules, pressure in found[STARTS]}
        )
    return Claim(jobs, None if head < 0 else head, now)


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


def _job(row: Row) -> ClaimedJob:
    (
        job_id, fence, seq, task, queue, priority, attempt, max_attempts, codec, body, headers, key, timeout,
        retry, created_at, ready_at, crashes, suspect, limited, on_dead, schedule,
        snoozes,
    ) = row  # fmt: skip
    return ClaimedJob(
        job_id, fence, seq, task.decode(), queue.decode(), priority, attempt, max_attempts, codec, body,
        headers, maybe_text(key), timeout, None if retry is None else _retry(retry), created_at, ready_at,
        crashes, suspect == 1, limited == 1, maybe_text(on_dead), maybe_text(schedule),
        snoozes,
    )  # fmt: skip
