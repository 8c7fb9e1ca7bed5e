"""Equal shares of a limited queue, played with workers that share nothing but the engine."""

import heapq
import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from tests.unit.worker.builders import a_job
from tidemill.model.jobs.run import Want
from tidemill.model.member import Detail, Health, MemberInfo, MemberRecord, ProcessDetail
from tidemill.model.queues.queue import QueueOptions
from tidemill.task.registry import Registry
from tidemill.worker.claiming.claim_size import ClaimSize
from tidemill.worker.claiming.shares import PATIENCE_S, TURN_S, YIELD_S, Shares, processes_by_queue

TRIP_S = 0.002


def a_member(name: str, *queues: str, processes: int = 2, **instead: Any) -> MemberRecord:
    detail = msgspec.json.encode(Detail(processes=tuple(ProcessDetail(pid=n + 1) for n in range(processes))))
    info = MemberInfo(id=name.encode() * 16, name=name, queues=queues, slots=5, detail=detail)
    fields = {"since": 0, "heartbeat_at": 0, "steady_since": 0, "health": Health.HEALTHY, "running": 0}
    return MemberRecord(info=info, **{**fields, **instead})


def shares_of(limit: int, processes: int) -> Shares:
    shares = Shares(["q"])
    shares.options_in_force({"q": QueueOptions(concurrency=limit)})
    shares.members_are([a_member("a", "q", processes=processes)])
    return shares


class Play:
    """Some processes with free slots, one queue with a limit, more jobs than can run."""

    def __init__(self, limit: int, processes: int, *, absent: int = 0, job_s: float = 0.05) -> None:
        self.limit, self.job_s, self.draw = limit, job_s, random.Random(limit)
        self.shares = [shares_of(limit, processes + absent) for _ in range(processes)]
        self.held, self.ran = Counter[int](), Counter[int]()
        self.again_at = [0.0] * processes
        self.events: list[tuple[float, int, str]] = [(0.0, n, "signal") for n in range(processes)]

    def run(self, until_s: float) -> float:
        """Returns how much of the limit was used."""
        while self.events[0][0] < until_s:
            now_s, process, event = heapq.heappop(self.events)
            if event == "again" and self.again_at[process] != now_s:
                continue  # it has claimed since, and waits for another moment
            if event == "end":
                self.held[process] -= 1
                self.ran[process] += 1
            self.claim(process, now_s)
            if event == "end":
                for other in range(len(self.shares)):
                    signal_at = now_s + TRIP_S * self.draw.uniform(0.5, 1.5)
                    heapq.heappush(self.events, (signal_at, other, "signal"))
        return self.ran.total() * self.job_s / (self.limit * until_s)

    def claim(self, process: int, now_s: float) -> None:
        shares, left = self.shares[process], self.limit - self.held.total()
        room = shares.room("q", lambda _: self.held[process], now_s)
        jobs = left if room is None else min(left, room)
        shares.came([a_job(queue="q")] * jobs, now_s)
        self.held[process] += jobs
        for _ in range(jobs):
            ends_at = now_s + self.job_s * self.draw.uniform(0.9, 1.1)
            heapq.heappush(self.events, (ends_at, process, "end"))
        again_at = shares.opens_at()
        self.again_at[process] = 0.0 if again_at is None else max(again_at, now_s + TRIP_S)
        if again_at is not None:
            heapq.heappush(self.events, (self.again_at[process], process, "again"))


@pytest.mark.row("C7")
@pytest.mark.parametrize("processes", [2, 3, 4, 7])
@pytest.mark.parametrize("limit", [1, 2, 5, 8, 30])
def test_equal_processes_get_equal_shares(limit: int, processes: int) -> None:
    play = Play(limit, processes)
    used = play.run(40.0)
    assert min(play.ran[n] for n in range(processes)) >= 0.8 * max(play.ran.values())
    assert used >= 0.9


@pytest.mark.parametrize("limit", [1, 5, 8])
def test_what_others_leave_is_anybodys(limit: int) -> None:
    """One works where four are expected: it gets all, soon."""
    play = Play(limit, 1, absent=3, job_s=1.0)
    assert play.run(20.0) >= 0.85


def test_one_process_is_not_bound() -> None:
    assert shares_of(5, 1).room("q", lambda _: 0, 0.0) is None
    assert shares_of(5, 1).room("other", lambda _: 0, 0.0) is None


def test_a_process_asks_for_its_share_and_later_for_what_is_left() -> None:
    shares = shares_of(5, 2)
    assert shares.room("q", lambda _: 0, 0.0) == 2
    shares.came([a_job(queue="q")] * 2, 0.0)
    assert shares.room("q", lambda _: 2, 0.0) == 1, "it has never had the odd one"
    shares.came([a_job(queue="q")], 0.0)
    assert shares.room("q", lambda _: 3, 0.0) == 0
    assert shares.opens_at() == PATIENCE_S
    assert shares.room("q", lambda _: 3, PATIENCE_S) is None
    shares.came([], PATIENCE_S)
    assert shares.opens_at() is None, "nothing is there: it waits for a signal"
    assert shares.room("q", lambda _: 3, 1.0) == 0
    assert shares.opens_at() == 1.0 + PATIENCE_S


def test_who_had_the_odd_permit_lets_another_come_first() -> None:
    shares = shares_of(5, 2)
    shares.came([a_job(queue="q")] * 3, 0.0)
    assert shares.room("q", lambda _: 2, TURN_S / 2) == 1, "its turn goes on"
    shares.came([a_job(queue="q")], TURN_S / 2)
    assert shares.room("q", lambda _: 3, TURN_S / 2) == 0
    assert shares.room("q", lambda _: 2, 1.0) == 0
    assert shares.opens_at() == 1.0 + YIELD_S
    assert shares.room("q", lambda _: 1, 1.0) == 1
    assert shares.room("q", lambda _: 2, 1.0) == 0
    assert shares.room("q", lambda _: 2, 1.0 + YIELD_S) == 1


def test_processes_are_counted_by_queue() -> None:
    members = [
        a_member("a", "q", "r"),
        a_member("b", "q", processes=0),
        a_member("c", "q", health=Health.GONE),
    ]
    assert processes_by_queue(members) == {"q": 3, "r": 2}


def test_a_claim_is_bound_by_the_share() -> None:
    registry = Registry()
    registry.declare("q", {"concurrency": 6})
    size = ClaimSize(("q", "r"), registry)
    assert size.queues(9, lambda _: 0, 0.0) == (Want("q", 9), Want("r"))
    size.shares.members_are([a_member("a", "q")])
    assert size.queues(9, lambda _: 1, 0.0) == (Want("q", 2), Want("r"))
    assert size.queues(9, lambda _: 3, 0.0) == (Want("r"),)
    size.options_in_force({"q": QueueOptions(concurrency=8)})
    assert size.queues(9, lambda _: 3, 0.0) == (Want("q", 1), Want("r"))
    size.options_in_force({})
    assert size.queues(9, lambda _: 3, 0.0) == (Want("q"), Want("r"))
