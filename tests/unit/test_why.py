"""Reasons, made of facts: the sentences as people read them, and what pages need beside them."""

from typing import Any, get_args

import pytest

from tidemill.model.ids import id_at, show_id
from tidemill.model.jobs.job import Failure, JobRecord, JobState
from tidemill.model.jobs.run import ReleaseReason
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.model.time import HOUR, MINUTE, SECOND
from tidemill.model.why.facts import (
    AHEAD_COUNTED,
    GateFacts,
    GateToPass,
    Holder,
    ParentFacts,
    Pause,
    WhyFacts,
    Workers,
    gates_to_pass,
)
from tidemill.model.why.reasons import ORDER, STOPS, WORKERS, ReasonKind, reasons_of

NOW = 1_800_000_000 * SECOND
ID = id_at(NOW, bytes(10))
OTHER = id_at(NOW + 1_000, bytes(10))


def a_record(state: JobState = JobState.READY, **fields: Any) -> JobRecord:
    return JobRecord(
        **{"id": ID, "task": "shop.send", "queue": "email", "priority": 5, "state": state, **fields}
    )


def facts(state: JobState = JobState.READY, known: dict[str, Any] | None = None, **fields: Any) -> WhyFacts:
    said = {"workers": Workers(1, 1), **(known or {})}
    return WhyFacts(now=NOW, job=a_record(state, **fields), **said)


def sentences(*arguments: Any, **fields: Any) -> list[str]:
    return [reason.sentence for reason in reasons_of(facts(*arguments, **fields))]


def gate(kind: Any, name: str, limit: Limit, **now: Any) -> GateFacts:
    return GateFacts(gate=GateToPass(kind=kind, name=name, limit=limit), **now)


def test_a_job_that_can_start() -> None:
    assert sentences() == ['Nothing holds it back: the next free slot for queue "email" takes it.']


def test_a_job_that_waits_for_room_in_a_process() -> None:
    assert sentences(known={"per_worker": Limit(rate=Rate(1, per=60))}) == [
        'The next worker process with room for queue "email" takes it: each may take 1 in 60 s (per_worker), '
        "and only the process itself counts that."
    ]
    assert sentences(known={"per_worker": Limit(), "ahead": 1}) == ["1 job stands before it in its lane."]


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (300_000, "0.3 s"),
        (13_456, "0.013 s"),
        (20, "0 s"),
        (12 * SECOND, "12 s"),
        (4 * MINUTE + 5 * SECOND, "4 min 5 s"),
        (50 * HOUR, "2 d 2 h"),
    ],
)
def test_a_job_that_is_not_due(wait: int, words: str) -> None:
    assert sentences(JobState.SCHEDULED, due_at=NOW + wait) == [f"It is due in {words}."]


def test_a_job_that_waits_for_a_retry() -> None:
    error = Failure(error="smtplib.SMTPException", message="refused.\nTry later")
    fields = {"due_at": NOW + 30 * SECOND, "attempts": 2, "error": error, "failure_count": 2}
    assert sentences(JobState.SCHEDULED, **fields) == [
        "Attempt 2 of 5 failed (SMTPException: refused); the next one is due in 30 s."
    ]


def test_a_long_message_is_cut() -> None:
    error = Failure(error="ValueError", message="x" * 5_000)
    (text,) = sentences(JobState.SCHEDULED, due_at=NOW + SECOND, attempts=1, error=error)
    assert len(text) < 300


def test_a_pause() -> None:
    paused = Pause(NOW - 90 * SECOND, "ada", "a deploy")
    assert sentences(known={"pause": paused}) == ['Queue "email" was paused by ada 1 min 30 s ago: a deploy.']
    assert sentences(known={"pause": Pause(NOW, "", "")}) == ['Queue "email" was paused 0 s ago.']


def test_parents() -> None:
    waiting = {"parents": (ParentFacts(OTHER, JobState.RUNNING),)}
    assert sentences(JobState.BLOCKED, waiting, waits_for=1) == ["It waits for 1 other job."]
    assert sentences(JobState.BLOCKED, waiting, waits_for=1_000) == ["It waits for 1,000 other jobs."]
    dead = {"parents": (ParentFacts(OTHER, JobState.DEAD), ParentFacts(ID, JobState.READY))}
    assert sentences(JobState.BLOCKED, dead, waits_for=2) == [
        f"It waits for 2 other jobs; {show_id(OTHER)} is dead and has to be replayed."
    ]


def test_a_full_gate() -> None:
    holders = (Holder(OTHER, "host:7", NOW - SECOND), Holder(ID, "host:8", NOW))
    full = gate("key", "acme", Limit(concurrency=5), held=5, holders=holders)
    (reason,) = reasons_of(facts(known={"gates": (full,)}))
    assert reason.sentence == (
        'The limit of key "acme" in queue "email" is full: 5 of 5 run; '
        f"the longest is {show_id(OTHER)} on host:7."
    )
    assert (reason.gate, reason.limit, reason.count, reason.holders) == ("key acme", 5, 5, holders)
    assert [(each.what, each.name) for each in reason.opens] == [
        ("queue", "email"),
        ("job", show_id(OTHER)),
        ("job", show_id(ID)),
    ]


@pytest.mark.parametrize(
    ("kind", "name", "words", "label"),
    [
        ("queue", "", 'queue "email"', "queue"),
        ("task", "shop.send", 'task "shop.send" in queue "email"', "task shop.send"),
        ("key", "", 'jobs without a key in queue "email"', "key"),
    ],
)
def test_the_name_of_a_gate(kind: str, name: str, words: str, label: str) -> None:
    (reason,) = reasons_of(facts(known={"gates": (gate(kind, name, Limit(concurrency=1), held=1),)}))
    assert reason.sentence == f"The limit of {words} is full: 1 of 1 run."
    assert reason.gate == label


def test_a_rate() -> None:
    limit = Limit(rate=Rate(2, per=60))
    used = gate("queue", "", limit, starts=((NOW - 10 * SECOND, 1), (NOW - 5 * SECOND, 1)))
    (reason,) = reasons_of(facts(known={"gates": (used,)}))
    assert reason.until is not None
    assert reason.until > NOW
    assert reason.sentence.startswith(
        'The rate of queue "email" is used up (2 in 60 s): the next start is free in 50 s'
    )
    assert reason.limit == 2
    free = gate("queue", "", limit, starts=((NOW - 10 * SECOND, 1), (NOW - 120 * SECOND, 5)))
    assert [each.kind for each in reasons_of(facts(known={"gates": (free,)}))] == [ReasonKind.READY]


def test_a_gate_with_room_is_no_reason() -> None:
    half = gate("queue", "", Limit(concurrency=2), held=1)
    assert [each.kind for each in reasons_of(facts(known={"gates": (half,)}))] == [ReasonKind.READY]


def test_jobs_before_it() -> None:
    assert sentences(known={"ahead": 1}) == ["1 job stands before it in its lane."]
    assert sentences(known={"ahead": 412}) == ["412 jobs stand before it in its lane."]
    assert sentences(known={"ahead": AHEAD_COUNTED + 1}) == [
        "More than 1,000 jobs stand before it in its lane."
    ]
    assert sentences(known={"better": 1}) == [
        '1 job of a better priority (below 5) is ready in queue "email".'
    ]
    assert sentences(known={"better": AHEAD_COUNTED + 1}) == [
        'More than 1,000 jobs of a better priority (below 5) are ready in queue "email".'
    ]


def test_workers() -> None:
    assert sentences(known={"workers": Workers()}) == [
        'No live worker takes queue "email": start one with `tidemill worker APP`.'
    ]
    assert sentences(known={"workers": Workers(queues=("video",))}) == ['No live worker takes queue "email".']
    assert sentences(known={"workers": Workers(queues=("emails", "video"))}) == [
        "No live worker takes queue \"email\"; did you mean 'emails'?"
    ]
    assert sentences(known={"workers": Workers(2, 0)}) == [
        'No live worker of queue "email" knows the task "shop.send".'
    ]
    assert [each.kind for each in reasons_of(facts(known={"workers": Workers(2, 1)}))] == [ReasonKind.READY]


def test_what_holds_nothing_back_stands_behind() -> None:
    found = reasons_of(facts(suspect=True, reason="no process runner", member="host:7"))
    assert [each.kind for each in found] == [ReasonKind.READY, ReasonKind.SUSPECT, ReasonKind.RELEASED]
    assert found[2].sentence == "Its last run was released: the worker had no process of its own for it."


@pytest.mark.parametrize("reason", get_args(ReleaseReason))
def test_every_release_is_said_in_words(reason: str) -> None:
    said = sentences(reason=reason)[1]
    assert not said.endswith(f": {reason}."), "the bare word says nothing to a reader"


def test_a_claim_that_passes_over_a_job_is_no_run() -> None:
    (_, said) = sentences(reason="unknown task")
    assert said == "A worker that does not know its task has left it to others."


def test_a_job_that_has_expired() -> None:
    found = reasons_of(facts(expires_at=NOW - 3 * SECOND))
    assert [each.kind for each in found] == [ReasonKind.EXPIRED]
    assert found[0].sentence == "It was not started in time: its time ran out 3 s ago."


def test_a_job_that_runs() -> None:
    fields = {"claimed_at": NOW - 5 * SECOND, "member": "host:7"}
    assert sentences(JobState.RUNNING, **fields) == ["It was taken 5 s ago on host:7: attempt 1 of 5."]
    fields["started_at"] = NOW - 4 * SECOND
    assert sentences(JobState.RUNNING, **fields) == ["It has been running for 4 s on host:7: attempt 1 of 5."]
    assert sentences(JobState.RUNNING, cancel_requested=True, **fields)[1] == (
        "It was asked to stop and has not stopped yet."
    )


def test_a_job_that_has_ended() -> None:
    fields = {"ended_at": NOW - MINUTE, "member": "host:7", "attempts": 5}
    assert sentences(JobState.COMPLETED, **fields) == ["It was completed by host:7 1 min ago."]
    error = Failure(error="ValueError", message="no such user")
    assert sentences(JobState.DEAD, error=error, **fields) == [
        "It died 1 min ago after 5 of 5 attempts: ValueError: no such user."
    ]
    assert sentences(JobState.CANCELLED, error=error, **fields) == ["It was cancelled 1 min ago."]
    parent = Failure(kind="parent", message="a parent did not complete")
    assert sentences(JobState.CANCELLED, error=parent, ended_at=NOW) == [
        "It was cancelled 0 s ago: parent: a parent did not complete."
    ]


def test_gates_are_between_a_job_and_its_start_alone() -> None:
    options = QueueOptions(
        concurrency=1, per_task={"shop.send": Limit(concurrency=1)}, per_key=Limit(concurrency=1)
    )
    kinds = [each.kind for each in gates_to_pass(a_record(), options, NOW)]
    assert kinds == ["queue", "task", "key"]
    due = a_record(JobState.SCHEDULED, due_at=NOW)
    assert len(gates_to_pass(due, options, NOW)) == 3
    for job in (a_record(JobState.SCHEDULED, due_at=NOW + 1), a_record(JobState.BLOCKED)):
        assert gates_to_pass(job, options, NOW) == []


def test_a_kind_holds_back_in_one_way() -> None:
    assert len(STOPS | ORDER | WORKERS) == len(STOPS) + len(ORDER) + len(WORKERS)
