"""Which jobs a claim takes, and in which order.

The order of choice is a chain of lazy iterators: a lane yields its jobs by seq, lanes of a priority
take turns, priorities follow one another, queues take turns. A job is pulled from the chain exactly
when it is taken, so permits are counted down as they are used and nothing is read in vain.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import chain, islice

from tidemill.engine.protocol import ASIDE_LIMIT, HANDLED_LIMIT, PROMOTE_LIMIT
from tidemill.engine.shared.turns import ClaimTurns
from tidemill.engines.sqlite.claiming import aside
from tidemill.engines.sqlite.claiming.ready_rows import (
    BY_PK,
    EXPIRES,
    ID,
    IN_LANE,
    KEY,
    LANE,
    PK,
    QUEUE,
    SEQ,
    SUSPECT,
    TASK,
    Row,
)
from tidemill.engines.sqlite.cluster.catalogue import KnownQueue
from tidemill.engines.sqlite.jobs import dependents, facts, promote, transitions
from tidemill.engines.sqlite.jobs.step import READY, Step, marks
from tidemill.engines.sqlite.order import lanes
from tidemill.engines.sqlite.order.gates import GateRoom, Rooms, next_wake
from tidemill.engines.sqlite.order.positions import ASIDE, LaneKey, aside_lane, group_in, is_aside
from tidemill.model.jobs.run import ClaimRequest
from tidemill.model.names import KEY_LIMIT
from tidemill.model.queues.lane import take_turns, weight_of
from tidemill.model.queues.starts import FREE, PRESSED, Pressure, StartRules, Starts
from tidemill.model.time import Span

LANES_SCANNED = 1_000
"""The most lanes that one claim scans in one priority; the next claim goes on from there."""
LAST_LANE = "\U0010ffff" * (2 * KEY_LIMIT + 2)
"""Above every group: a task's name and a key, each of at most `KEY_LIMIT` characters."""

FEW = 2
"""Jobs read at first from a lane that is one of many."""


class Choice:
    """The choice of one claim."""

    def __init__(self, step: Step, request: ClaimRequest, turns: ClaimTurns[int]) -> None:
        self._step = step
        self._request = request
        self._turns = turns
        self._suspects_left = request.suspects
        self._passed = aside.passed_over(step, request)
        self._page = max(request.most, ASIDE_LIMIT if self._passed else 0)
        self._set_aside: list[Row] = []
        self._aside_tasks: dict[int, list[str]] = {}
        self._rooms: dict[int, Rooms] = {}
        self._expired: list[int] = []
        self._emptied: list[LaneKey] = []
        self._queues: list[KnownQueue] = []
        self._more_at_once = False

    def by_turns(self) -> list[Row]:
        """The wanted queues take turns."""
        request = self._request
        wants = {want.queue: want.most for want in request.wants}
        names = self._turns.queues(request.claimant, list(wants))
        offers: list[tuple[int, Iterator[Row]]] = []
        served: list[str] = []
        for name in names:
            queue = None if wants[name] == 0 else self._prepare(name)
            if queue is not None:
                offers.append((1, islice(self._of_queue(queue), wants[name])))  # islice(None): no bound
                served.append(name)
        if len(offers) == 1:  # no turns to take
            rows = list(islice(offers[0][1], request.most))
            if rows:
                self._turns.queue_served(request.claimant, served[0])
            return rows
        taken = list(islice(take_turns(offers), request.most))
        if taken:
            self._turns.queue_served(request.claimant, served[taken[-1][0]])
        return [row for _, row in taken]

    def by_ids(self) -> list[Row]:
        """Only the jobs that a broker delivered."""
        ids = tuple(dict.fromkeys(self._request.ids or ()))
        for queue in {job.queue for job in facts.by_ids(self._step, ids).values()}:
            self._prepare(self._step.catalogue.by_pk[queue].name)
        pks = [job.pk for job in facts.by_ids(self._step, ids).values() if job.state == READY]
        found = self._step.db.execute(BY_PK.format(marks(len(pks))), pks)
        ready = {row[ID]: row for row in found}
        open_queues = {queue.pk: queue for queue in self._queues}
        taken: list[Row] = []
        for row in (ready[job_id] for job_id in ids if job_id in ready):
            if row[QUEUE] in open_queues and len(taken) < self._request.most:
                rooms = self._rooms_of(open_queues[row[QUEUE]]).behind(row[TASK], row[KEY])
                taken += list(self._admitted(iter([row]), rooms))
        return taken

    def finish(self) -> Starts:
        """Write what the choice brought to light. Returns when jobs under a rate start."""
        starts: dict[str, tuple[StartRules, Pressure]] = {}
        for pk, rooms in self._rooms.items():
            hurry, queue = rooms.close(), self._step.catalogue.by_pk[pk]
            if queue.starts is not None:
                starts[queue.name] = (queue.starts, PRESSED if hurry else FREE)
        for pk in self._expired:
            if self._step.handled >= HANDLED_LIMIT:
                break
            job = facts.by_pk(self._step, pk)
            if job is not None:
                transitions.expire(self._step, job)
        if self._set_aside:
            aside.set_aside(self._step, self._set_aside, self._request.unknown)
        if self._emptied:
            self._step.db.executemany(lanes.SQL.delete_empty_lane, self._emptied)
        return starts

    def wait(self) -> Span | None:
        """How long until time alone makes more claimable."""
        return 0 if self._more_at_once else wait_for(self._step, self._queues)

    def _prepare(self, name: str) -> KnownQueue | None:
        """Bring a queue up to date: due jobs ready, jobs in their lanes."""
        queue = self._step.catalogue.by_name.get(name)
        if queue is None or queue.paused:
            return None
        self._queues.append(queue)
        found = self._step.db.execute(lanes.SQL.check_queue, (queue.pk, self._step.now))
        due, stale, some_aside = found.fetchone()
        self._aside_tasks[queue.pk] = aside.tasks_in(self._step, queue.pk, self._passed) if some_aside else []
        if due:
            promote.due(self._step, queue, PROMOTE_LIMIT)
        if stale and not lanes.settle_shape(self._step, queue, PROMOTE_LIMIT):
            self._more_at_once = True
            return None
        return queue

    def _rooms_of(self, queue: KnownQueue) -> Rooms:
        rooms = self._rooms.get(queue.pk)
        if rooms is None:
            rooms = self._rooms[queue.pk] = Rooms(self._step, queue)
        return rooms

    def _of_queue(self, queue: KnownQueue) -> Iterator[Row]:
        rooms = self._rooms_of(queue)
        if queue.limited and rooms.own_is_full():
            return
        of_priority = self._of_priority if queue.shaped else self._of_plain_lane
        priority = -1
        while True:
            (priority,) = self._step.db.execute(lanes.SQL.next_priority, (queue.pk, priority)).fetchone()
            if priority is None:
                return
            yield from of_priority(queue, priority, rooms)

    def _of_plain_lane(self, queue: KnownQueue, priority: int, rooms: Rooms) -> Iterator[Row]:
        """A queue whose lanes have no groups has one lane a priority: no turns to take."""
        return self._of_lane(queue, priority, "", "", rooms)

    def _of_priority(self, queue: KnownQueue, priority: int, rooms: Rooms) -> Iterator[Row]:
        """Lanes take turns from where this claimant stopped, its last lane first if cut short."""
        claimant, options = self._request.claimant, queue.options
        last, used = self._turns.lane(claimant, queue.pk, priority)
        opened: dict[str, Iterator[Row]] = {}
        names: list[str] = []

        def in_turn(lowest: str, highest: str) -> Iterator[tuple[int, Iterator[Row]]]:
            for lane, key in self._open_lanes(queue, priority, rooms, lowest, highest):
                if queue.limited and rooms.own_is_full():
                    return
                if lane not in opened:
                    opened[lane] = self._of_lane(queue, priority, lane, key, rooms)
                names.append(lane)
                yield weight_of(options, lane), opened[lane]

        if last is not None and used < weight_of(options, last):
            for _, jobs in in_turn(last, last):
                for row in islice(jobs, weight_of(options, last) - used):
                    used += 1
                    self._turns.lane_served(claimant, queue.pk, priority, last, used)
                    yield row
        names.clear()
        previous = -1
        for index, row in take_turns(self._round(in_turn, last)):
            weight = weight_of(options, names[index])
            used = used % weight + 1 if index == previous else 1
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
        self, queue: KnownQueue, priority: int, rooms: Rooms, lowest: str, highest: str
    ) -> Iterator[tuple[str, str]]:
        """Open lanes of a priority within a range of groups: (group, key), page by page."""
        tasks = rooms.open_tasks() if queue.limited else [""]
        page, scanned = max(1, min(self._request.most, 100)), 0
        while scanned < LANES_SCANNED:
            found: set[tuple[str, str]] = set()
            complete = True
            for kind, task, begin in self._lane_kinds(queue, tasks):
                parameters = (queue.pk, priority, kind, task, begin + lowest, begin + highest, page)
                rows = self._step.db.execute(lanes.SQL.open_lanes, parameters).fetchall()
                found.update(rows if kind < ASIDE else [(group_in(lane), key) for lane, key in rows])
                complete = complete and len(rows) < page
            in_order = sorted(found)
            if not complete:  # beyond the page, lanes of another kind might come in between
                in_order = in_order[:page]
                lowest = _after(in_order[-1][0])
            yield from in_order
            if complete:
                return
            scanned += len(in_order)
        self._more_at_once = True

    def _lane_kinds(self, queue: KnownQueue, tasks: list[str]) -> Iterator[tuple[int, str, str]]:
        """Where open lanes of a group may be: kind, limited task, and what their texts begin with."""
        for suspect in self._forms():
            for task in tasks:
                yield suspect, task, ""
            for name in self._aside_tasks[queue.pk]:
                task = name if queue.options.limit_of_task(name) else ""
                if task in tasks:
                    yield suspect + ASIDE, task, aside_lane(name, "")

    def _forms(self) -> tuple[int, ...]:
        """Whether suspects are read: (0,) or (0, 1)."""
        return (0, 1) if self._suspects_left > 0 else (0,)

    def _of_lane(self, queue: KnownQueue, priority: int, lane: str, key: str, rooms: Rooms) -> Iterator[Row]:
        """A lane's jobs by seq, while its gates have room. Suspects are stored apart, and what stands aside,
        so that a claim that may not take them does not meet them; one that may merges them."""
        texts = [(0, lane), *((ASIDE, aside_lane(task, lane)) for task in self._aside_tasks[queue.pk])]
        parts = [
            self._read((queue.pk, priority, suspect + kind, text))
            for suspect in self._forms()
            for kind, text in texts
        ]
        rows = parts[0] if len(parts) == 1 else merge(*parts, key=_seq)
        first = next(rows, None)
        if first is not None:
            behind = rooms.behind(first[TASK], key) if queue.limited else []
            yield from self._admitted(chain((first,), rows), behind)

    def _read(self, lane: LaneKey) -> Iterator[Row]:
        """A lane's jobs, page by page: a plain lane may have to fill the claim, one of many gives a few.
        (Cursors left open would each need a statement of their own: 60 us a job with 100 lanes.)"""
        size, after = FEW if lane[3] else self._request.most, -1
        while True:
            rows = self._step.db.execute(IN_LANE, (*lane, after, size)).fetchall()
            yield from rows
            if len(rows) < size:
                break
            after, size = rows[-1][SEQ], min(4 * size, self._page)
        if lane[3]:  # a lane without a group is kept, empty or not: there are few of them
            self._emptied.append(lane)

    def _admitted(self, rows: Iterable[Row], behind: list[GateRoom]) -> Iterator[Row]:
        """The rows that may start now, up to the first that finds a gate full."""
        now = self._step.now
        for row in rows:
            if row[EXPIRES] is not None and row[EXPIRES] <= now:
                self._expired.append(row[PK])
                if len(self._expired) >= PROMOTE_LIMIT:
                    self._more_at_once = True
                    return
                continue
            if row[TASK] in self._passed:
                if is_aside(row[LANE]):
                    continue
                if len(self._set_aside) >= ASIDE_LIMIT:
                    self._more_at_once = True
                    return
                self._set_aside.append(row)
                continue
            if row[SUSPECT] and not self._suspects_left:
                continue
            for room in behind:
                if room.left <= 0:
                    return
            for room in behind:
                room.take()
            self._suspects_left -= row[SUSPECT]
            yield row


def wait_for(step: Step, queues: list[KnownQueue]) -> Span | None:
    """How long until time alone makes more claimable in these queues."""
    if dependents.unfinished(step):
        return 0
    moments = []
    for queue in queues:
        moments += [next_wake(step, queue.pk), promote.next_due(step, queue.pk)]
    times = [moment for moment in moments if moment is not None]
    return max(0, min(times) - step.now) if times else None


def _after(group: str) -> str:
    """The lowest group above this one (control characters below \\x1f occur in none)."""
    return group + "\x01"


def _seq(row: Row) -> int:
    return int(row[SEQ])
