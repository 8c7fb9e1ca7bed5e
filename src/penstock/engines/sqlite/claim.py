"""Taking jobs: who may claim, which jobs come next, and what taking them writes.

The order of choice is a chain of lazy iterators: a lane yields its jobs by seq, lanes of a priority
take turns, priorities follow one another, queues take turns. A job is pulled from the chain exactly
when it is taken, so permits are counted down as they are used and nothing is looked at in vain.
"""

from collections.abc import Callable, Generator, Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import msgspec

from penstock.engine.protocol import PROMOTE_LIMIT
from penstock.engine.statements import load_statements
from penstock.engines.sqlite import facts, lanes, moves, promote, ripple
from penstock.engines.sqlite.catalogue import Queue
from penstock.engines.sqlite.gates import Room, Rooms, next_wake
from penstock.engines.sqlite.step import READY, RUNNING, Step, marks
from penstock.engines.sqlite.turns import Turns
from penstock.model.errors import BadInput, ClaimantRetired, ClaimOutOfOrder, MemberGone
from penstock.model.job import Claim, ClaimedJob, ClaimRequest
from penstock.model.lane import take_turns, weight_of
from penstock.model.retry import Retry
from penstock.model.time import Instant, Span

SQL = load_statements(__package__, "claim")

LANES_LOOKED_AT = 1_000
"""The most lanes that one claim looks into in one priority; the next claim goes on from there."""
LAST_LANE = "\U0010ffff"

_retry = lru_cache(1_024)(msgspec.json.Decoder(Retry).decode)


class Row(NamedTuple):
    """A ready job, with everything that its worker needs. The columns, in the order of selection."""

    pk: int
    id: bytes
    seq: int
    task: str
    queue: int
    priority: int
    attempts: int
    max_attempts: int
    codec: int
    body: bytes
    headers: bytes | None
    key: str
    timeout: Span | None
    retry: bytes | None
    created_at: Instant
    ready_at: Instant
    crashes: int
    suspect: int
    on_dead: str | None
    schedule: str | None
    expires_at: Instant | None


_SELECT = f"SELECT {', '.join(Row._fields)} FROM job "
_IN_LANE = (
    f"{_SELECT} WHERE state = 2 AND queue = ? AND priority = ? AND suspect = ? AND lane = ? ORDER BY seq"
)
_READY_BY_ID = _SELECT + "WHERE state = 2 AND id IN ({})"
_SAME_CLAIM = f"SELECT fence, {', '.join(Row._fields)} FROM job WHERE state = 3 AND claimant = ? AND claim_no = ?"


class Claimant(NamedTuple):
    """Who claims, as the engine knows it. pk None: it has never taken anything."""

    pk: int | None
    member_name: str


def check(request: ClaimRequest) -> None:
    """Refuse before anything is done."""
    if not 0 <= request.most <= PROMOTE_LIMIT:
        raise BadInput(f"a claim takes between 0 and {PROMOTE_LIMIT:,} jobs, not {request.most}")
    if request.number < 1:
        raise BadInput(f"claims are numbered from 1, not {request.number}")


def claim(step: Step, request: ClaimRequest, turns: Turns) -> Claim:
    """Take up to `request.most` jobs, or the same ones again for a repeated number."""
    claimant, repeated = _admit(step, request)
    if repeated is not None:
        return repeated
    ripple.tell(step, PROMOTE_LIMIT)
    take = _Take(step, request, turns)
    try:
        rows = take.by_turns() if request.ids is None else take.by_ids()
    finally:
        take.close_cursors()
    jobs = _write(step, request, claimant, rows)
    take.finish()
    return Claim(jobs, None if len(jobs) >= request.most else take.wait())


def _admit(step: Step, request: ClaimRequest) -> tuple[Claimant, Claim | None]:
    row = step.db.execute(SQL.admit, (request.claimant, request.member)).fetchone()
    if row is None:
        raise MemberGone("this member is not registered, or was dropped after its lease: beat first")
    name, pk, number, retired_at = row
    if retired_at is not None:
        raise ClaimantRetired("this claimant was declared dead; start a new one")
    if pk is not None and request.number < number:
        raise ClaimOutOfOrder(f"claim {request.number} comes after claim {number} of the same claimant")
    claimant = Claimant(pk, name)
    return claimant, _again(step, pk, number) if pk is not None and request.number == number else None


def _again(step: Step, claimant: int, number: int) -> Claim:
    found = step.db.execute(_SAME_CLAIM, (claimant, number)).fetchall()
    return Claim([_job(step, Row._make(row[1:]), row[0]) for row in sorted(found)])


def _write(step: Step, request: ClaimRequest, claimant: Claimant, rows: list[Row]) -> list[ClaimedJob]:
    if not rows:
        return []
    pk = claimant.pk
    if pk is None:
        (pk,) = step.db.execute(SQL.add_claimant, (request.claimant, request.member, request.number)).fetchone()
    else:
        step.db.execute(SQL.number_claim, (request.number, pk))
    fence = step.draw_fences(len(rows))
    jobs, takes, counts = [], [], dict.fromkeys([row.queue for row in rows], 0)
    queues = step.catalogue.by_pk
    for row in rows:
        jobs.append(_job(step, row, fence))
        gated = queues[row.queue].limited
        takes.append((fence, pk, request.number, claimant.member_name, step.now, gated, row.pk))
        counts[row.queue] += 1
        fence += 1
    step.db.executemany(SQL.take, takes)
    for queue, count in counts.items():
        step.move(queue, READY, RUNNING, count)
    return jobs


def _job(step: Step, row: Row, fence: int) -> ClaimedJob:
    queue = step.catalogue.by_pk[row.queue]
    return ClaimedJob(
        row.id, fence, row.seq, row.task, queue.name, row.priority, row.attempts + 1, row.max_attempts,
        row.codec, row.body, row.headers, row.key or None, row.timeout,
        None if row.retry is None else _retry(row.retry), row.created_at, row.ready_at, row.crashes,
        bool(row.suspect), queue.limited or queue.shaped, row.on_dead, row.schedule,
    )  # fmt: skip


class _Take:
    """The choice of one claim."""

    def __init__(self, step: Step, request: ClaimRequest, turns: Turns) -> None:
        self._step = step
        self._request = request
        self._turns = turns
        self._suspects_left = request.suspects
        self._rooms: dict[int, Rooms] = {}
        self._cursors: list[Callable[[], None]] = []
        self._expired: list[int] = []
        self._emptied: list[tuple[int, int, int, str]] = []
        self._queues: list[Queue] = []
        self._more_at_once = False

    def by_turns(self) -> list[Row]:
        """The wanted queues take turns."""
        request = self._request
        wants = {want.queue: want.most for want in request.wants}
        names = self._turns.queues(request.claimant, list(wants))
        offers: list[tuple[int, Iterator[Row]]] = []
        served: list[str] = []
        for name in names:
            queue = self._prepare(name)
            if queue is not None:
                offers.append((1, islice(self._of_queue(queue), wants[name])))  # islice(None): no bound
                served.append(name)
        taken = list(islice(take_turns(offers), request.most))
        if taken:
            self._turns.queue_served(request.claimant, served[taken[-1][0]])
        return [row for _, row in taken]

    def by_ids(self) -> list[Row]:
        """Only the jobs that a broker delivered."""
        ids = tuple(dict.fromkeys(self._request.ids or ()))
        for queue in {job.queue for job in facts.by_ids(self._step, ids).values()}:
            self._prepare(self._step.catalogue.by_pk[queue].name)
        found = self._step.db.execute(_READY_BY_ID.format(marks(len(ids))), ids).fetchall()
        ready = {row[1]: Row._make(row) for row in found}
        open_queues = {queue.pk: queue for queue in self._queues}
        taken = []
        for row in (ready[job_id] for job_id in ids if job_id in ready):
            if row.queue in open_queues and len(taken) < self._request.most:
                rooms = self._rooms_of(open_queues[row.queue]).behind(row.task, row.key)
                taken += list(self._admitted(iter([row]), rooms))
        return taken

    def finish(self) -> None:
        """Write what the choice brought to light."""
        for rooms in self._rooms.values():
            rooms.close()
        for pk in self._expired:
            job = facts.by_pk(self._step, pk)
            if job is not None:
                moves.expire(self._step, job)
        self._step.db.executemany(lanes.SQL.delete_lane, self._emptied)

    def wait(self) -> Span | None:
        """How long until time alone makes more claimable."""
        if self._more_at_once or ripple.unfinished(self._step):
            return 0
        moments = []
        for queue in self._queues:
            moments += [next_wake(self._step, queue.pk), promote.next_due(self._step, queue.pk)]
        times = [moment for moment in moments if moment is not None]
        return max(0, min(times) - self._step.now) if times else None

    def close_cursors(self) -> None:
        for close in self._cursors:
            close()

    def _prepare(self, name: str) -> Queue | None:
        """Bring a queue up to date: due jobs ready, jobs in their lanes."""
        queue = self._step.catalogue.by_name.get(name)
        if queue is None or queue.paused:
            return None
        self._queues.append(queue)
        promote.due(self._step, queue, PROMOTE_LIMIT)
        if not lanes.settle_shape(self._step, queue, PROMOTE_LIMIT):
            self._more_at_once = True
            return None
        return queue

    def _rooms_of(self, queue: Queue) -> Rooms:
        rooms = self._rooms.get(queue.pk)
        if rooms is None:
            rooms = self._rooms[queue.pk] = Rooms(self._step, queue)
        return rooms

    def _of_queue(self, queue: Queue) -> Iterator[Row]:
        rooms = self._rooms_of(queue)
        if queue.limited and rooms.own_is_full():
            return
        priority = -1
        while True:
            (priority,) = self._step.db.execute(lanes.SQL.next_priority, (queue.pk, priority)).fetchone()
            if priority is None:
                return
            yield from self._of_priority(queue, priority, rooms)

    def _of_priority(self, queue: Queue, priority: int, rooms: Rooms) -> Iterator[Row]:
        """Lanes take turns from where this claimant stopped, its last lane first if cut short."""
        claimant, options = self._request.claimant, queue.options
        last, used = self._turns.lane(claimant, queue.pk, priority)
        opened: dict[tuple[int, str], Iterator[Row]] = {}
        names: list[str] = []

        def in_turn(lowest: str, highest: str) -> Iterator[tuple[int, Iterator[Row]]]:
            for suspect, lane, key in self._open_lanes(queue, priority, rooms, lowest, highest):
                if queue.limited and rooms.own_is_full():
                    return
                jobs = opened.get((suspect, lane))
                if jobs is None:
                    jobs = opened[suspect, lane] = self._of_lane(queue, priority, suspect, lane, key, rooms)
                names.append(lane)
                yield weight_of(options, lane), jobs

        if last is not None and used < weight_of(options, last):
            for _, jobs in in_turn(last, last):
                for row in islice(jobs, weight_of(options, last) - used):
                    used += 1
                    self._turns.lane_served(claimant, queue.pk, priority, last, used)
                    yield row
        names.clear()
        previous = -1
        for index, row in take_turns(self._round(in_turn, last)):
            used = used + 1 if index == previous else 1
            previous = index
            self._turns.lane_served(claimant, queue.pk, priority, names[index], used)
            yield row

    @staticmethod
    def _round(
        in_turn: Callable[[str, str], Iterator[tuple[int, Iterator[Row]]]], last: str | None
    ) -> Iterator[tuple[int, Iterator[Row]]]:
        if last is None:
            yield from in_turn("", LAST_LANE)
        else:
            yield from in_turn(_after(last), LAST_LANE)
            yield from in_turn("", last)

    def _open_lanes(
        self, queue: Queue, priority: int, rooms: Rooms, lowest: str, highest: str
    ) -> Iterator[tuple[int, str, str]]:
        """Open lanes of a priority within a range of groups: (suspect, group, key), page by page."""
        tasks = rooms.open_tasks() if queue.limited else [""]
        page, looked_at = max(1, min(self._request.most, 100)), 0
        while looked_at < LANES_LOOKED_AT:
            found: list[tuple[str, int, str]] = []
            for suspect in (0, 1) if self._suspects_left else (0,):
                for task in tasks:
                    parameters = (queue.pk, priority, suspect, task, lowest, highest, page)
                    rows = self._step.db.execute(lanes.SQL.open_lanes, parameters).fetchall()
                    found += [(lane, suspect, key) for lane, key in rows]
            found.sort()
            complete = len(found) < page
            if not complete:  # beyond the page, another bucket's lanes might come in between
                edge = found[page - 1][0]
                found = [entry for entry in found if entry[0] <= edge]
                lowest = _after(edge)
            yield from ((suspect, lane, key) for lane, suspect, key in found)
            if complete:
                return
            looked_at += len(found)
        self._more_at_once = True

    def _of_lane(
        self, queue: Queue, priority: int, suspect: int, lane: str, key: str, rooms: Rooms
    ) -> Iterator[Row]:
        """A lane's jobs by seq, while its gates have room."""
        cursor = self._step.db.execute(_IN_LANE, (queue.pk, priority, suspect, lane))
        self._cursors.append(cursor.close)
        first = cursor.fetchone()
        if first is not None:
            row = Row._make(first)
            behind = rooms.behind(row.task, key) if queue.limited else []
            left = yield from self._admitted(_chain(row, cursor), behind)
            if left:
                return
        if lane:
            self._emptied.append((queue.pk, priority, suspect, lane))

    def _admitted(self, rows: Iterator[Row], behind: list[Room]) -> Generator[Row, None, bool]:
        """The rows that may start now; returns True if some were left because there is no room."""
        now = self._step.now
        for row in rows:
            if row.expires_at is not None and row.expires_at <= now:
                self._expired.append(row.pk)
                continue
            if row.suspect and not self._suspects_left:
                return True
            for room in behind:
                if room.left <= 0:
                    return True
            for room in behind:
                room.take()
            self._suspects_left -= row.suspect
            yield row
        return False


def _after(group: str) -> str:
    """The lowest group above this one (control characters below \\x1f occur in none)."""
    return group + "\x01"


def _chain(first: Row, cursor: Iterator[tuple[object, ...]]) -> Iterator[Row]:
    yield first
    for row in cursor:
        yield Row._make(row)
