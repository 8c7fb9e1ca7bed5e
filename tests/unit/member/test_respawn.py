"""Respawn: which worker process comes next, and when."""

import asyncio
import errno
from collections.abc import Sequence
from typing import Any, cast

import pytest

from tidemill.engine.boot import boot_ns
from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineUnavailable
from tidemill.model.ids import new_id
from tidemill.model.jobs.run import LostRun, Settlement
from tidemill.worker import backoff
from tidemill.worker.config import WorkerConfig
from tidemill.worker.member import respawn as respawn_module
from tidemill.worker.member.messages import Drained, Ready
from tidemill.worker.member.respawn import LAST_TRIES, Respawn
from tidemill.worker.process.held_table import HeldTable

CONFIG = WorkerConfig(url="sqlite://", slots=2, stuck_after_s=0, stuck_grace_s=0)


class TheEngine:
    """Notes what is reported about the dead."""

    def __init__(self) -> None:
        self.jobs = self
        self.retired: list[Sequence[LostRun]] = []
        self.settled: list[Settlement] = []
        self.away = 0

    async def retire(self, claimant: bytes, lost_runs: Sequence[LostRun]) -> int:
        if self.away:
            self.away -= 1
            raise EngineUnavailable("away")
        self.retired.append(lost_runs)
        return 2

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        self.settled += settlements


class AWorkerProcess:
    """A worker process that ends when it is told to."""

    def __init__(self, config: WorkerConfig, **options: Any) -> None:
        self.pid, self.claimant = 7, new_id()
        self.held_table = HeldTable.create(8)
        self.ready: Ready | None = Ready(["default"])
        self.ready_ns = boot_ns()
        self.drained: Drained | None = None
        self.cannot_load = self.leaving = ""
        self.stuck: frozenset[int] = frozenset()
        self.killed = self.closed = False
        self.received: list[object] = []
        self.exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def start(self) -> None: ...

    async def wait(self) -> int:
        return await self.exit

    def rows(self) -> list[Any]:
        return self.held_table.rows()

    def drain(self, timeout_s: float | None) -> None:
        self.received.append(("drain", timeout_s))

    def hurry(self) -> None:
        self.received.append("hurry")

    def kill(self, stuck: frozenset[int] = frozenset()) -> None:
        self.killed, self.stuck = True, stuck
        self.exit.set_result(-9)

    def close(self) -> None:
        self.closed = True
        self.held_table.close()


class TheRespawn:
    """A respawn, and its worker process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(respawn_module, "WorkerProcess", self._make_process)
        self.engine = TheEngine()
        self.cannot_load: list[str] = []
        self.respawn = Respawn(
            cast(Engine, self.engine),
            CONFIG,
            member=new_id(),
            takes_suspects=True,
            is_ready=lambda: None,
            has_published=lambda: None,
            cannot_load=self.cannot_load.append,
        )

    def _make_process(self, *args: Any, **options: Any) -> AWorkerProcess:
        self.one = AWorkerProcess(*args, **options)
        return self.one

    async def live(self) -> "asyncio.Task[float]":
        life = asyncio.create_task(self.respawn.run_once())
        await asyncio.sleep(0)
        assert self.respawn.process is cast(Any, self.one)
        return life

    async def live_and_die(self, code: int = -9, lived_s: float = 0) -> float:
        life = await self.live()
        self.one.ready_ns -= round(lived_s * 1e9)
        self.one.exit.set_result(code)
        pause_s = await life
        assert self.respawn.process is None
        assert self.one.closed
        return pause_s


@pytest.fixture
def the(monkeypatch: pytest.MonkeyPatch) -> TheRespawn:
    monkeypatch.setattr(backoff, "FIRST_S", 0)
    return TheRespawn(monkeypatch)


async def test_those_who_die_young_are_followed_ever_later(the: TheRespawn) -> None:
    pauses = [await the.live_and_die() for _ in range(9)]
    assert pauses == [0, 1, 2, 4, 8, 16, 30, 30, 30]
    assert await the.live_and_die(lived_s=6) == 0
    assert await the.live_and_die() == 0


async def test_a_life_counts_from_the_moment_it_was_ready(the: TheRespawn) -> None:
    """However long it took to import the app before it failed."""
    pauses = []
    for _ in range(3):
        life = await the.live()
        the.one.ready, the.one.ready_ns = None, 0
        the.one.exit.set_result(78)
        pauses.append(await life)
    assert pauses == [0, 1, 2]


async def test_no_descriptors_for_a_held_table_are_no_reason_to_end(
    the: TheRespawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> AWorkerProcess:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(respawn_module, "WorkerProcess", refuse)
    assert [await the.respawn.run_once() for _ in range(3)] == [0, 1, 2]
    assert the.engine.retired == []


async def test_a_process_that_cannot_be_started_is_tried_again(
    the: TheRespawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(self: AWorkerProcess) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(AWorkerProcess, "start", refuse)
    assert [await the.respawn.run_once() for _ in range(3)] == [0, 1, 2]
    assert the.one.closed
    assert the.engine.retired == []


@pytest.mark.row("A4")
async def test_the_dead_are_retired_with_the_blame(the: TheRespawn) -> None:
    life = await the.live()
    job = new_id()
    row = the.one.held_table.hold(job, 5)
    the.one.held_table.hold(new_id(), 6)
    the.one.held_table.start(row, started_ns=1, deadline_ns=0, retry_in=0)
    the.one.exit.set_result(-11)
    await life
    ((lost_run,),) = the.engine.retired
    assert (lost_run.id, lost_run.fence, lost_run.verdict) == (job, 5, "crash")
    assert "SIGSEGV" in lost_run.message


@pytest.mark.row("A4")
@pytest.mark.parametrize("how", ["killed", "leaving", "cannot_load", "drained"])
async def test_an_end_of_our_own_making_blames_nobody(the: TheRespawn, how: str) -> None:
    life = await the.live()
    the.one.held_table.start(the.one.held_table.hold(new_id(), 5), started_ns=1, deadline_ns=0, retry_in=0)
    value: Any = {"killed": True, "drained": Drained(1, 0)}.get(how, "because")
    setattr(the.one, how, value)
    the.one.exit.set_result(1)
    await life
    assert the.engine.retired == [[]]


@pytest.mark.row("E4")
async def test_a_stuck_run_costs_its_process_and_is_settled_as_timed_out(the: TheRespawn) -> None:
    life = await the.live()
    the.respawn.check_stuck()
    assert not the.one.killed
    held_table = the.one.held_table
    held_table.start(held_table.hold(new_id(), 5), started_ns=1, deadline_ns=boot_ns() + 10**12, retry_in=9)
    the.respawn.check_stuck()
    assert not the.one.killed
    held_table.start(held_table.hold(new_id(), 6), started_ns=1, deadline_ns=1, retry_in=9)
    the.respawn.check_stuck()  # with no patience at all, by this test's settings
    await life
    assert [settlement.fence for settlement in the.engine.settled] == [6]
    assert the.engine.retired == [[]]
    the.respawn.check_stuck()  # nobody is there


@pytest.mark.row("A4")
async def test_an_engine_that_is_away_is_told_later(the: TheRespawn) -> None:
    the.engine.away = 3
    await the.live_and_die()
    assert len(the.engine.retired) == 1


@pytest.mark.row("D2")
async def test_one_that_has_to_end_does_not_wait_for_the_engine_for_ever(the: TheRespawn) -> None:
    the.engine.away = LAST_TRIES
    life = asyncio.create_task(the.respawn.run())
    await asyncio.sleep(0)
    the.one.held_table.hold(new_id(), 5)
    the.respawn.drain(None)
    the.one.exit.set_result(0)
    await life
    assert the.engine.retired == []
    assert the.respawn.handed_back == 1


@pytest.mark.row("A12", "B7")
async def test_once_drained_nothing_is_respawned_and_outcomes_are_counted(the: TheRespawn) -> None:
    life = asyncio.create_task(the.respawn.run())
    await asyncio.sleep(0)
    the.respawn.drain(30.0)
    the.respawn.hurry()
    assert the.one.received == [("drain", 30.0), "hurry"]
    the.one.held_table.count(5)
    the.one.drained = Drained(finished=3, released=1)
    the.one.exit.set_result(0)
    await life
    assert (the.respawn.finished, the.respawn.handed_back) == (5, 3)


@pytest.mark.row("B7")
async def test_who_does_not_receive_the_drain_is_killed(
    the: TheRespawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(respawn_module, "END_MARGIN_S", 0.01)
    life = asyncio.create_task(the.respawn.run())
    await asyncio.sleep(0)
    the.respawn.drain(0.01)
    await asyncio.wait_for(life, 20)
    assert the.one.killed


async def test_a_drain_between_two_lives_ends_it(the: TheRespawn) -> None:
    the.respawn._young_deaths = 8
    life = asyncio.create_task(the.respawn.run())
    await asyncio.sleep(0)
    the.one.exit.set_result(1)
    while not the.one.closed:  # noqa: ASYNC110  (a few turns of the loop)
        await asyncio.sleep(0)
    the.respawn.drain(1.0)
    await asyncio.wait_for(life, 20)


async def test_an_app_that_cannot_be_loaded_is_reported(the: TheRespawn) -> None:
    life = await the.live()
    the.one.ready, the.one.cannot_load = None, "no such app"
    the.one.exit.set_result(78)
    await life
    assert the.cannot_load == ["no such app"]
