"""Reasons why a job is not running, made of facts: data for pages and programs, a sentence for people.

Every job has at least one reason, whatever its state. A reason has a kind:

- **It cannot start** (`STOPS`): a claim does not take the job while one of these holds. A claim that asks for
  this one job, with room for a suspect, takes it exactly if none of them does.
- **Others go first** (`ORDER`): a claim may take it, but takes those before it first.
- **Nobody is there to take it** (`WORKERS`): no live worker takes its queue, or knows its task.
- **For information**: it is a suspect, or its last run was released. These hold nothing back.
- `ready`: none of the first three holds. The next free slot takes it. A limit `per_worker` may be used up,
  which no engine knows: the sentence names it.
- `running`, `stopping`, `ended`: it has started.

A new condition of the claim becomes a kind here, with what it needs in `facts`.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Literal

import msgspec

from tidemill.model.ids import show_id
from tidemill.model.jobs.job import FINAL, Failure, JobRecord, JobState
from tidemill.model.names import nearest
from tidemill.model.queues.spoken import words_of_limit, words_of_option
from tidemill.model.time import SECOND, Instant, Span
from tidemill.model.why.facts import AHEAD_COUNTED, GateFacts, Holder, ParentFacts, Pause, WhyFacts, is_due


class ReasonKind(StrEnum):
    """What kind of reason it is. Names are a promise."""

    NOT_DUE = "not due"
    """Its time has not come; a first start or a retry."""
    PARENTS = "parents"
    """It waits for other jobs."""
    EXPIRED = "expired"
    """It was not started in time: the next step that meets it makes it dead."""
    PAUSED = "paused"
    """Its queue is paused, or its task."""
    GATE_FULL = "gate full"
    """As many run as a limit allows."""
    RATE = "rate"
    """As many have started as a rate allows."""
    PRIORITY = "priority"
    """Jobs of a better priority are ready in its queue."""
    BEHIND = "behind"
    """Jobs stand before it in its lane."""
    NO_WORKER = "no worker"
    """No live worker takes its queue."""
    UNKNOWN_TASK = "unknown task"
    """Live workers take its queue, and none of them has its task."""
    SUSPECT = "suspect"
    """It may have crashed a worker process: it needs a process of its own."""
    RELEASED = "released"
    """A worker released its last run, or left it because it does not know its task."""
    READY = "ready"
    """It can start now."""
    RUNNING = "running"
    STOPPING = "stopping"
    """It runs and was asked to stop."""
    ENDED = "ended"


STOPS = frozenset({
    ReasonKind.NOT_DUE, ReasonKind.PARENTS, ReasonKind.EXPIRED, ReasonKind.PAUSED, ReasonKind.GATE_FULL,
    ReasonKind.RATE,
})  # fmt: skip
ORDER = frozenset({ReasonKind.PRIORITY, ReasonKind.BEHIND})
WORKERS = frozenset({ReasonKind.NO_WORKER, ReasonKind.UNKNOWN_TASK})


class Opens(msgspec.Struct, frozen=True):
    """Something that a reader may want to open."""

    what: Literal["queue", "job", "member", "task"]
    name: str
    """The name of a queue, member or task; the id of a job, dashed."""


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One reason. The names of the fields are a promise; fields that do not fit the kind are empty."""

    kind: ReasonKind
    sentence: str
    since: Instant | None = None
    """Since when: of a pause, a run, an end."""
    until: Instant | None = None
    """When time alone ends it; None: time alone does not."""
    by: str = ""
    """Who paused it; the member that runs or ran it."""
    why: str = ""
    """What was said with a pause; why a run was released; what a job died of."""
    count: int | None = None
    """Jobs before it, or jobs that it waits for."""
    more: bool = False
    """It is more than `count`: counted no further."""
    gate: str = ""
    """Which limit: "queue", "task shop.send" or "key acme"."""
    limit: int | None = None
    """Of a full gate: how many may run. Of a rate: how many may start in its window."""
    holders: tuple[Holder, ...] = ()
    """Some of the running jobs that fill a gate, the longest running first."""
    opens: tuple[Opens, ...] = ()
    """What to open, the most useful first."""


def reasons_of(facts: WhyFacts) -> list[Reason]:
    """Why a job is where it is, the reasons that hold it back first. Never empty."""
    job = facts.job
    if job.state in FINAL:
        return [_ended(job, facts.now)]
    if job.state is JobState.RUNNING:
        return list(_running(job, facts.now))
    holds = [*_stops(facts), *_order(facts), *_workers(facts)]
    if not holds:
        text = _free(job.queue, words_of_limit(facts.per_worker))
        holds.append(Reason(kind=ReasonKind.READY, sentence=text, opens=(Opens("queue", job.queue),)))
    return [*holds, *_notes(job)]


def _free(queue: str, per_worker: str) -> str:
    """What is said where nothing that the engine knows holds it back."""
    if not per_worker:
        return f"Nothing holds it back: the next free slot for queue {_quoted(queue)} takes it."
    return (
        f"The next worker process with room for queue {_quoted(queue)} takes it: each may take {per_worker} "
        "(per_worker), and only the process itself counts that."
    )


def _stops(facts: WhyFacts) -> Iterator[Reason]:
    job, now = facts.job, facts.now
    if job.state is JobState.BLOCKED:
        yield _parents(job, facts.parents)
    if job.state is JobState.SCHEDULED and not is_due(job, now):
        yield _not_due(job, now)
    if job.expires_at is not None and job.expires_at <= now:
        text = f"It was not started in time: its time ran out {_span(now - job.expires_at)} ago."
        yield Reason(kind=ReasonKind.EXPIRED, sentence=text, since=job.expires_at)
    if facts.pause is not None:
        yield _paused("queue", job.queue, facts.pause, now)
    if facts.task_pause is not None:
        yield _paused("task", job.task, facts.task_pause, now)
    for gate in facts.gates:
        if gate.full:
            yield _full(job, gate)
        if (opens_at := gate.opens_at(now)) is not None:
            yield _rate(job, gate, opens_at, now)


def _order(facts: WhyFacts) -> Iterator[Reason]:
    queue = facts.job.queue
    if facts.better:
        more = facts.better > AHEAD_COUNTED
        text = (
            f"{_jobs(facts.better)} of a better priority (below {facts.job.priority}) "
            f"{'are' if facts.better > 1 else 'is'} ready in queue {_quoted(queue)}."
        )
        yield Reason(
            kind=ReasonKind.PRIORITY,
            sentence=text,
            count=min(facts.better, AHEAD_COUNTED),
            more=more,
            opens=(Opens("queue", queue),),
        )
    if facts.ahead:
        text = f"{_jobs(facts.ahead)} {'stand' if facts.ahead > 1 else 'stands'} before it in its lane."
        yield Reason(
            kind=ReasonKind.BEHIND,
            sentence=text,
            count=min(facts.ahead, AHEAD_COUNTED),
            more=facts.ahead > AHEAD_COUNTED,
            opens=(Opens("queue", queue),),
        )


def _workers(facts: WhyFacts) -> Iterator[Reason]:
    job, workers = facts.job, facts.workers
    if not workers.take_queue:
        hint = (
            nearest(job.queue, workers.queues)
            if workers.queues
            else ": start one with `tidemill worker APP`."
        )
        text = f"No live worker takes queue {_quoted(job.queue)}{hint or '.'}"
        yield Reason(kind=ReasonKind.NO_WORKER, sentence=text, opens=(Opens("queue", job.queue),))
    elif workers.know_task == 0:
        text = f"No live worker of queue {_quoted(job.queue)} knows the task {_quoted(job.task)}."
        opens = (Opens("task", job.task), Opens("queue", job.queue))
        yield Reason(kind=ReasonKind.UNKNOWN_TASK, sentence=text, opens=opens)


_RELEASED = {
    "no process runner": "the worker had no process of its own for it",
    "drain": "the worker was stopping",
    "snooze": "its code asked for a later time",
    "late": "it came too late for its permit of a rate, and needs another one",
}


def _notes(job: JobRecord) -> Iterator[Reason]:
    if job.suspect:
        text = (
            "It may have crashed a worker process: only a worker that gives it a process of its own runs it."
        )
        yield Reason(kind=ReasonKind.SUSPECT, sentence=text)
    if job.reason is not None:
        if job.reason == "unknown task":  # maybe without a run: a claim passes over it, too
            text = "A worker that does not know its task has left it to others."
        else:
            text = f"Its last run was released: {_RELEASED.get(job.reason, job.reason)}."
        yield Reason(
            kind=ReasonKind.RELEASED,
            sentence=text,
            by=job.member,
            why=job.reason,
            opens=_member(job.member),
        )


def _parents(job: JobRecord, parents: tuple[ParentFacts, ...]) -> Reason:
    died = [parent for parent in parents if parent.state in (JobState.DEAD, JobState.CANCELLED)]
    text = f"It waits for {_jobs(job.waits_for, 'other ')}."
    if died:
        text = f"{text[:-1]}; {show_id(died[0].id)} is {died[0].state} and has to be replayed."
    first = [*died, *(parent for parent in parents if parent not in died)]
    return Reason(
        kind=ReasonKind.PARENTS,
        sentence=text,
        count=job.waits_for,
        opens=tuple(Opens("job", show_id(parent.id)) for parent in first),
    )


def _not_due(job: JobRecord, now: Instant) -> Reason:
    wait = _span(0 if job.due_at is None else job.due_at - now)
    if job.attempts and job.error is not None and job.reason is None:
        text = (
            f"Attempt {job.attempts} of {job.max_attempts} failed ({_brief(job.error)}); "
            f"the next one is due in {wait}."
        )
    else:
        text = f"It is due in {wait}."
    return Reason(kind=ReasonKind.NOT_DUE, sentence=text, until=job.due_at)


def _paused(what: Literal["queue", "task"], name: str, pause: Pause, now: Instant) -> Reason:
    text = f"{what.capitalize()} {_quoted(name)} was paused{' by ' + pause.by if pause.by else ''}"
    text += f" {_span(now - pause.at)} ago{': ' + pause.why if pause.why else ''}."
    return Reason(
        kind=ReasonKind.PAUSED,
        sentence=text,
        since=pause.at,
        by=pause.by,
        why=pause.why,
        opens=(Opens(what, name),),
    )


def _full(job: JobRecord, facts: GateFacts) -> Reason:
    limit = facts.gate.limit.concurrency
    assert limit is not None
    text = f"The limit of {_gate_in_words(job, facts)} is full: {facts.held:,} of {limit:,} run"
    if facts.holders:
        first = facts.holders[0]
        text += f"; the longest is {show_id(first.id)} on {first.member}"
    opened = tuple(Opens("job", show_id(holder.id)) for holder in facts.holders)
    return Reason(
        kind=ReasonKind.GATE_FULL,
        sentence=f"{text}.",
        count=facts.held,
        gate=_gate(facts),
        limit=limit,
        holders=facts.holders,
        opens=(Opens("queue", job.queue), *opened),
    )


def _rate(job: JobRecord, facts: GateFacts, opens_at: Instant, now: Instant) -> Reason:
    rate = facts.gate.limit.rate
    assert rate is not None
    text = (
        f"The rate of {_gate_in_words(job, facts)} is used up ({words_of_option('rate', rate)}): "
        f"the next start is free in {_span(opens_at - now)}."
    )
    return Reason(
        kind=ReasonKind.RATE,
        sentence=text,
        until=opens_at,
        gate=_gate(facts),
        limit=rate.count,
        opens=(Opens("queue", job.queue),),
    )


def _running(job: JobRecord, now: Instant) -> Iterator[Reason]:
    begun = job.started_at or job.claimed_at or now
    verb = "has been running" if job.started_at is not None else "was taken"
    ago = f"for {_span(now - begun)}" if job.started_at is not None else f"{_span(now - begun)} ago"
    on = f" on {job.member}" if job.member else ""
    text = f"It {verb} {ago}{on}: attempt {job.attempts_begun} of {job.max_attempts}."
    opens = _member(job.member)
    yield Reason(kind=ReasonKind.RUNNING, sentence=text, since=begun, by=job.member, opens=opens)
    if job.cancel_requested:
        text = "It was asked to stop and has not stopped yet."
        yield Reason(kind=ReasonKind.STOPPING, sentence=text, by=job.member, opens=opens)


def _ended(job: JobRecord, now: Instant) -> Reason:
    ago = "" if job.ended_at is None else f" {_span(now - job.ended_at)} ago"
    by, why = (f" by {job.member}" if job.member else ""), ""
    if job.state is JobState.COMPLETED:
        text = f"It was completed{by}{ago}."
    elif job.state is JobState.DEAD:
        why = "" if job.error is None else _brief(job.error)
        text = f"It died{ago} after {job.attempts} of {job.max_attempts} attempts{': ' if why else ''}{why}."
    else:
        failure = job.error
        why = _brief(failure) if failure is not None and failure.kind == "parent" else ""
        text = f"It was cancelled{ago}{': ' if why else ''}{why}."
    return Reason(
        kind=ReasonKind.ENDED,
        sentence=text,
        since=job.ended_at,
        by=job.member,
        why=why,
        opens=_member(job.member),
    )


def _gate(facts: GateFacts) -> str:
    kind, name = facts.gate.kind, facts.gate.name
    return kind if kind == "queue" else f"{kind} {name}".rstrip()


def _gate_in_words(job: JobRecord, facts: GateFacts) -> str:
    kind, name = facts.gate.kind, facts.gate.name
    if kind == "queue":
        return f"queue {_quoted(job.queue)}"
    if kind == "key" and not name:
        return f"jobs without a key in queue {_quoted(job.queue)}"
    return f"{kind} {_quoted(name)} in queue {_quoted(job.queue)}"


def _member(name: str) -> tuple[Opens, ...]:
    return (Opens("member", name),) if name else ()


def _jobs(count: int, which: str = "") -> str:
    if count > AHEAD_COUNTED and not which:
        return f"More than {AHEAD_COUNTED:,} jobs"
    return f"{count:,} {which}job{'' if count == 1 else 's'}"


def _brief(failure: Failure) -> str:
    """A failure in few words: `OSError: no route`."""
    name = failure.error.rpartition(".")[2] or failure.kind
    message = failure.message.partition("\n")[0].rstrip(".")
    if len(message) > MESSAGE_SHOWN:
        message = f"{message[:MESSAGE_SHOWN]}..."
    return f"{name}: {message}" if message else name


MESSAGE_SHOWN = 200
"""Characters of a failure's message in a sentence."""


def _quoted(name: str) -> str:
    return f'"{name}"'


def _span(span: Span) -> str:
    """A length as people say it: 0.3 s, 12 s, 4 min 5 s, 3 h 2 min, 5 d 3 h."""
    if span < 10 * SECOND:
        return f"{round(max(0, span) / SECOND, 3):.3g} s"
    rest = span // SECOND
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if rest >= size or parts:
            parts.append(f"{rest // size} {unit}")
            rest %= size
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))
