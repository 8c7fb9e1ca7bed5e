"""How many workers queues want: enough for what can start, and no more."""

import msgspec
import pytest

from tidemill.model.errors import UnknownQueue
from tidemill.model.member import Health, MemberInfo, MemberRecord
from tidemill.model.queues.queue import QueueOptions, Rate
from tidemill.model.scaling.demand import Demand, demand_of, mean_run_s, slots_wanted, startable
from tidemill.model.time import MINUTE
from tidemill.model.view import Finished, QueueCounts, QueueInfo

WAIT_S = 2.0


@pytest.mark.parametrize(
    ("options", "ready", "running", "can_start"),
    [
        (QueueOptions(), 1_000, 3, 1_000),
        (QueueOptions(concurrency=5), 1_000, 3, 2),
        (QueueOptions(concurrency=5), 1_000, 7, 0),  # the limit was lowered
        (QueueOptions(rate=Rate(100, per=60)), 1_000, 0, 4),  # so many permits come in two seconds
        (QueueOptions(rate=Rate(100, per=60)), 2, 0, 2),
        (QueueOptions(concurrency=1, rate=Rate(100)), 1_000, 0, 1),
    ],
)
def test_what_a_limit_does_not_let_start_wants_no_slot(
    options: QueueOptions, ready: int, running: int, can_start: int
) -> None:
    assert startable(ready, running, options, WAIT_S) == can_start


@pytest.mark.parametrize(
    ("running", "waiting", "run_s", "wanted"),
    [
        (0, 0, None, 0),
        (3, 0, 1.0, 3),
        (0, 1_000, 0.05, 25),
        (4, 10, 0.001, 4),  # they begin in time where they are
        (4, 10, 60.0, 14),  # a slot for each, not 300
        (4, 10, None, 14),
        (0, 1, 0.001, 1),
    ],
)
def test_the_slots_that_jobs_want(running: int, waiting: int, run_s: float | None, wanted: int) -> None:
    assert slots_wanted(running=running, startable=waiting, run_s=run_s, wait_s=WAIT_S) == wanted


def test_how_long_a_job_takes_follows_from_what_runs_and_what_ended() -> None:
    assert mean_run_s(10, Finished(completed=570, failed=20, cancelled=10), MINUTE) == 1.0
    assert mean_run_s(10, Finished(), MINUTE) is None
    assert mean_run_s(0, Finished(completed=5), MINUTE) is None


def a_worker(name: str, queues: tuple[str, ...], slots: int, health: Health = Health.HEALTHY) -> MemberRecord:
    info = MemberInfo(id=name.encode().ljust(16), name=name, queues=queues, slots=slots)
    return MemberRecord(info=info, since=0, heartbeat_at=0, steady_since=0, health=health, running=0)


def the_demand(*members: MemberRecord, only: str | None = None) -> Demand:
    counts = [
        QueueCounts(queue="mail", ready=30, running=10),
        QueueCounts(queue="paused", ready=500, running=1),
        QueueCounts(queue="quiet"),
    ]
    queues = [
        QueueInfo(name=one.queue, options=QueueOptions(), created_at=0, paused_at=None) for one in counts
    ]
    queues[1] = msgspec.structs.replace(queues[1], paused_at=1)
    return demand_of(counts, queues, members, only=only, window=MINUTE, slots_per_worker=10)


@pytest.mark.row("F13")
def test_a_queue_wants_workers_for_what_can_start() -> None:
    demand = the_demand()
    assert [(one.queue, one.slots, one.workers) for one in demand.queues] == [
        ("mail", 40, 4),
        ("paused", 1, 1),
        ("quiet", 0, 0),
    ]
    assert (demand.slots, demand.workers) == (41, 5), "one worker serves several queues"
    assert the_demand(only="quiet").workers == 0


@pytest.mark.row("F13")
def test_live_workers_say_how_many_slots_one_has() -> None:
    demand = the_demand(
        a_worker("one", ("mail",), 20),
        a_worker("other", ("mail", "quiet"), 20),
        a_worker("gone", ("mail",), 20, Health.GONE),
        only="mail",
    )
    assert (demand.workers, demand.slots_per_worker, demand.live_workers) == (2, 20, 2)
    assert demand.queues[0].live_slots == 40


def test_a_queue_that_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownQueue, match="there is no queue 'mial'; did you mean 'mail'"):
        the_demand(only="mial")
