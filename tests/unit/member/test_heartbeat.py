"""One round of heartbeats and sweeps at a time, against an engine that does as it is told."""

import asyncio
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import pytest
from msgspec.structs import replace

from tidemill.engine.boot import boot_ns
from tidemill.engine.protocol import BATCH_LIMIT, Engine, Reclaimed
from tidemill.model.errors import EngineClosed, EngineFull, EngineUnavailable
from tidemill.model.event import ANY_TOPIC, Signal, member_topic
from tidemill.model.ids import JobId, new_id
from tidemill.model.jobs.job import Fence
from tidemill.model.member import ClaimantHeartbeat, HeartbeatReply, MemberInfo, StopRequest
from tidemill.model.stats.batch import StatsBatch, StatsRow
from tidemill.worker.member.handover import Handover
from tidemill.worker.member.heartbeat import GAP_S, Heartbeats
from tidemill.worker.process.held_table import HeldTable

INFO = MemberInfo(id=bytes(16), name="here:1")
AWAY = EngineUnavailable("away")
PATIENCE_S = 20


class TheEngine:
    """Plays the facets that are used here; `answers` are given one after the other, errors raised."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.heartbeats: list[Sequence[ClaimantHeartbeat]] = []
        self.batches: list[StatsBatch | None] = []
        self.running = 0
        self.most_running = 0
        self.received: asyncio.Queue[Signal | None] = asyncio.Queue()
        self.heartbeat_answered = asyncio.Event()
        self.members = self.jobs = self.signals = self

    async def heartbeat(
        self,
        info: MemberInfo,
        claimants: Sequence[ClaimantHeartbeat] = (),
        *,
        statistics: StatsBatch | None = None,
    ) -> HeartbeatReply:
        self.heartbeats.append(claimants)
        self.batches.append(statistics)
        self.heartbeat_answered.set()
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        answer: HeartbeatReply = self._answer(a_reply(number=len(self.heartbeats)))
        return answer

    async def reclaim(self, member: bytes) -> Reclaimed:
        answer: Reclaimed = self._answer(Reclaimed(entitled=False))
        return answer

    async def subscribe(self, *topics: str) -> "TheEngine":
        self._answer(None)
        return self

    async def next(self, timeout: float | None = None) -> Signal | None:
        return await self.received.get()

    async def close(self) -> None:
        self.received.put_nowait(Signal("closed"))

    def _answer(self, default: Any) -> Any:
        answer = self.answers.pop(0) if self.answers else default
        if isinstance(answer, Exception):
            raise answer
        return answer


class AClaimant:
    """A worker process that listens, or does not."""

    def __init__(self, *fences: Fence) -> None:
        self.held_table = HeldTable.create(10)
        for fence in fences:
            self.held_table.hold(new_id(), fence)
        self.received: list[tuple[str, Any]] = []
        self.listens = True

    def heartbeat(self) -> ClaimantHeartbeat:
        return self.held_table.heartbeat(b"c" * 16)

    def heartbeat_answered(self, sent_ns: int | None, options: int = 0) -> bool:
        if sent_ns is not None:
            self.held_table.heartbeat_answered(sent_ns)
        self.received.append(("heartbeat_answered", sent_ns is not None))
        return self.listens

    def lost(self, fences: Sequence[Fence]) -> bool:
        self.received.append(("lost", list(fences)))
        return self.listens

    def stop_requested(self, runs: Sequence[tuple[JobId, Fence]]) -> bool:
        self.received.append(("stop_requested", [fence for _, fence in runs]))
        return self.listens

    def publish_again(self) -> bool:
        self.received.append(("publish_again", None))
        return self.listens

    def news(self) -> list[tuple[str, Any]]:
        """What was received since the last call, but for plain heartbeats."""
        news, self.received = [item for item in self.received if item[0] != "heartbeat_answered"], []
        return news


def a_reply(
    *, number: int = 1, new: bool = False, lost: Sequence[Fence] = (), stops: Sequence[Fence] = ()
) -> HeartbeatReply:
    asks = [StopRequest(new_id(), fence) for fence in stops]
    return HeartbeatReply(number=number, now=0, new=new, lost=list(lost), stop_requests=asks)


def the_heartbeats(engine: TheEngine, *claimants: AClaimant, **options: Any) -> Heartbeats:
    settings = {"heartbeat_s": 2.0, "sweep_s": 3.0, "handover": Handover(), **options}
    return Heartbeats(cast(Engine, engine), info=lambda: INFO, claimants=lambda: claimants, **settings)


@pytest.fixture
def engine() -> TheEngine:
    return TheEngine()


@pytest.mark.row("D2")
async def test_a_heartbeat_says_what_is_held_and_the_held_table_learns_of_it(engine: TheEngine) -> None:
    claimant = AClaimant(1, 2)
    before = boot_ns()
    delay_s = await the_heartbeats(engine, claimant).heartbeat()
    assert sorted(engine.heartbeats[0][0].held) == [1, 2]
    assert before <= claimant.held_table.heartbeat_ns <= boot_ns()
    assert claimant.received == [("heartbeat_answered", True)]
    assert 1.5 < delay_s <= 2.0


@pytest.mark.row("D2")
async def test_a_failed_heartbeat_leaves_the_held_table_alone(engine: TheEngine) -> None:
    claimant = AClaimant()
    heartbeats = the_heartbeats(engine, claimant)
    for error in (AWAY, EngineFull("full")):
        engine.answers.append(error)
        await heartbeats.heartbeat()
    assert (heartbeats.failures, heartbeats.answered.is_set(), claimant.held_table.heartbeat_ns) == (
        2,
        False,
        0,
    )
    assert claimant.received == [("heartbeat_answered", False)] * 2
    await heartbeats.heartbeat()
    assert (heartbeats.failures, heartbeats.answered.is_set()) == (0, True)
    assert claimant.received[-1] == ("heartbeat_answered", True)


@pytest.mark.row("D2")
async def test_it_gives_up_once_after_so_many_failures_in_a_row(engine: TheEngine) -> None:
    calls: list[str] = []
    heartbeats = the_heartbeats(engine, give_up_after=3, gave_up=lambda: calls.append("gave up"))
    engine.answers = [AWAY, AWAY, a_reply(), AWAY, AWAY]
    for _ in range(5):
        await heartbeats.heartbeat()
    assert calls == []
    engine.answers = [AWAY] * 3
    for _ in range(3):
        await heartbeats.heartbeat()
    assert calls == ["gave up"]


async def test_an_engine_that_we_closed_ends_the_loops(engine: TheEngine) -> None:
    heartbeats = the_heartbeats(engine)
    for each in (heartbeats.heartbeat, heartbeats.sweep, heartbeats.listen):
        engine.answers = [EngineClosed("closed")]
        with pytest.raises(EngineClosed):
            await each()


@pytest.mark.row("B11", "D3")
async def test_news_goes_to_the_process_that_holds_the_run_and_once(engine: TheEngine) -> None:
    one, other = AClaimant(1, 2), AClaimant(3)
    heartbeats = the_heartbeats(engine, one, other)
    reply = a_reply(lost=[1, 3], stops=[2, 99])
    engine.answers = [reply, reply]
    await heartbeats.heartbeat()
    assert one.news() == [("lost", [1]), ("stop_requested", [2])]
    assert other.news() == [("lost", [3])], "nobody holds 99 yet: it is sent when somebody does"
    other.held_table.hold(new_id(), 99)
    await heartbeats.heartbeat()
    assert one.news() == []
    assert other.news() == [("stop_requested", [99])]


@pytest.mark.row("D2", "D3")
async def test_lost_runs_are_sent_before_the_lease_is_fresh(engine: TheEngine) -> None:
    """After an outage a process starts what waits as soon as its lease is fresh: it must know by then."""
    fresh_when_received: list[bool] = []

    class Watches(AClaimant):
        def lost(self, fences: Sequence[Fence]) -> bool:
            fresh_when_received.append(self.held_table.heartbeat_ns > 0)
            return super().lost(fences)

    one, other = Watches(1, 2), Watches(3)
    engine.answers = [AWAY, a_reply(lost=[1, 3], stops=[2])]
    heartbeats = the_heartbeats(engine, one, other)
    await heartbeats.heartbeat()
    await heartbeats.heartbeat()
    assert one.received == [
        ("heartbeat_answered", False),
        ("lost", [1]),
        ("stop_requested", [2]),
        ("heartbeat_answered", True),
    ]
    assert other.received == [("heartbeat_answered", False), ("lost", [3]), ("heartbeat_answered", True)]
    assert fresh_when_received == [False, False]


@pytest.mark.row("D2", "D3")
async def test_who_could_not_be_sent_its_lost_runs_keeps_its_old_lease(engine: TheEngine) -> None:
    deaf, other = AClaimant(1), AClaimant(2)
    deaf.listens = False
    heartbeats = the_heartbeats(engine, deaf, other)
    engine.answers = [a_reply(lost=[1])] * 2
    await heartbeats.heartbeat()
    assert deaf.held_table.heartbeat_ns == 0
    assert other.held_table.heartbeat_ns > 0
    deaf.listens = True
    await heartbeats.heartbeat()
    assert deaf.received == [("lost", [1])] * 2 + [("heartbeat_answered", True)]
    assert deaf.held_table.heartbeat_ns > 0


@pytest.mark.row("B11")
async def test_what_could_not_be_sent_is_sent_again(engine: TheEngine) -> None:
    claimant = AClaimant(1, 2)
    heartbeats = the_heartbeats(engine, claimant)
    reply = a_reply(lost=[1], stops=[2])
    claimant.listens = False
    for listens in (False, True, True):
        claimant.listens = listens
        engine.answers = [reply]
        await heartbeats.heartbeat()
    assert claimant.news() == [("lost", [1]), ("stop_requested", [2])] * 2
    engine.answers = [a_reply()]
    await heartbeats.heartbeat()
    assert heartbeats._delivered == set(), "what is over is forgotten"


async def test_lost_data_and_a_lost_lease_are_said(
    engine: TheEngine, caplog: pytest.LogCaptureFixture
) -> None:
    """In both cases what was published is published again, before the lease is fresh."""
    claimant = AClaimant()
    heartbeats = the_heartbeats(engine, claimant)
    found = replace(a_reply(number=5), rolled_back=True)
    engine.answers = [a_reply(number=7, new=True), a_reply(number=3), a_reply(number=4, new=True), found]
    await heartbeats.heartbeat()
    assert caplog.messages == []
    assert claimant.news() == []
    for _ in range(3):
        await heartbeats.heartbeat()
        assert [what for what, _ in claimant.received] == ["publish_again", "heartbeat_answered"]
        assert claimant.news() == [("publish_again", None)]
    assert [(record.levelname, record.message.split(";")[0].split(":")[0]) for record in caplog.records] == [
        ("ERROR", "the engine has lost data"),
        ("WARNING", "this member was declared gone"),
        ("ERROR", "the engine has lost data"),
    ]
    await heartbeats.heartbeat()
    assert claimant.news() == []


@pytest.mark.row("D2")
async def test_heartbeats_never_overlap_and_a_signal_makes_one_early(engine: TheEngine) -> None:
    heartbeats = the_heartbeats(engine, heartbeat_s=1_000.0)
    running = asyncio.ensure_future(heartbeats.run())
    await asyncio.wait_for(heartbeats.answered.wait(), PATIENCE_S)
    for count in (2, 3, 4):
        engine.heartbeat_answered.clear()
        engine.received.put_nowait(Signal(ANY_TOPIC))
        engine.received.put_nowait(Signal(member_topic(INFO.id)))
        await asyncio.wait_for(engine.heartbeat_answered.wait(), PATIENCE_S)
        assert len(engine.heartbeats) == count
    assert engine.most_running == 1
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.row("D2")
async def test_however_many_signals_come_heartbeats_keep_their_gap(engine: TheEngine) -> None:
    moments: list[float] = []
    enough = asyncio.Event()

    def claimants() -> Sequence[AClaimant]:
        moments.append(time.monotonic())
        heartbeats.soon()  # one more signal with every heartbeat
        if len(moments) == 5:
            enough.set()
        return ()

    heartbeats = Heartbeats(
        cast(Engine, engine),
        info=lambda: INFO,
        claimants=claimants,
        handover=Handover(),
        heartbeat_s=1_000.0,
        sweep_s=3.0,
    )
    running = asyncio.ensure_future(heartbeats.run())
    await asyncio.wait_for(enough.wait(), PATIENCE_S)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert min(gaps) >= 0.9 * GAP_S, gaps


@pytest.mark.row("D2")
@pytest.mark.parametrize("ending", ["answered", "failed"])
async def test_a_heartbeat_under_way_ends_before_its_loop_does(engine: TheEngine, ending: str) -> None:
    """Or it could overtake the sign-off."""
    under_way, answer = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def heartbeat(*_: Any, **__: Any) -> Any:
        under_way.set()
        return await answer

    engine.heartbeat = heartbeat  # type: ignore[method-assign]
    heartbeating = asyncio.ensure_future(the_heartbeats(engine).heartbeat())
    await under_way.wait()
    heartbeating.cancel()
    done, _ = await asyncio.wait({heartbeating}, timeout=0.05)
    assert not done
    if ending == "answered":
        answer.set_result(a_reply())
    else:
        answer.set_exception(AWAY)
    with pytest.raises(asyncio.CancelledError):
        await heartbeating


# Statistics


def a_row(task: str, count: int = 1) -> StatsRow:
    return StatsRow("q", task, (count << 7,))


async def test_a_batch_goes_with_heartbeats_until_one_is_answered(engine: TheEngine) -> None:
    handover = Handover()
    heartbeats = the_heartbeats(engine, handover=handover)
    await heartbeats.heartbeat()
    handover.add([a_row("a")])
    handover.add([a_row("a"), a_row("b")])
    first = StatsBatch(1, (a_row("a", 2), a_row("b")))
    engine.answers = [AWAY, AWAY]
    await heartbeats.heartbeat()
    handover.add([a_row("c")])  # it waits for the next batch: the first one may have been applied
    await heartbeats.heartbeat()
    for _ in range(3):
        await heartbeats.heartbeat()
    assert engine.batches == [None, first, first, first, StatsBatch(2, (a_row("c"),)), None]


async def test_what_a_broken_process_says_does_not_stop_heartbeats(engine: TheEngine) -> None:
    handover = Handover()
    handover.add([a_row("a"), StatsRow("q", "a", (127,))])
    handover.add([a_row("a b")])
    await the_heartbeats(engine, handover=handover).heartbeat()
    assert engine.batches == [None]


async def test_what_is_left_is_handed_over_at_the_end(engine: TheEngine) -> None:
    handover = Handover()
    heartbeats = the_heartbeats(engine, handover=handover)
    await heartbeats.hand_over()
    assert engine.batches == []
    handover.add([a_row("a")])
    engine.answers = [AWAY]
    await heartbeats.heartbeat()
    handover.add([a_row("b")])
    await heartbeats.hand_over()
    assert engine.batches[1:] == [StatsBatch(1, (a_row("a"),)), StatsBatch(2, (a_row("b"),))]
    handover.add([a_row("c")])
    engine.answers = [AWAY]
    await heartbeats.hand_over()  # the engine is away: the end goes on


async def test_a_slow_engine_makes_heartbeats_rarer(engine: TheEngine) -> None:
    assert await the_heartbeats(engine, heartbeat_s=0.0).heartbeat() == GAP_S


async def test_listening_goes_on_after_an_error(engine: TheEngine) -> None:
    heartbeats = the_heartbeats(engine)
    engine.answers = [AWAY]
    assert await heartbeats.listen() > 0
    engine.received.put_nowait(None)
    assert await heartbeats.listen() > 0


@pytest.mark.row("D3")
async def test_a_sweep_goes_on_at_once_while_there_is_more(
    engine: TheEngine, caplog: pytest.LogCaptureFixture
) -> None:
    heartbeats = the_heartbeats(engine)
    engine.answers = [Reclaimed(entitled=True, jobs=BATCH_LIMIT), Reclaimed(True, 5, ["gone:1"]), AWAY]
    assert await heartbeats.sweep() == 0
    assert await heartbeats.sweep() == 3.0
    assert await heartbeats.sweep() == 3.0
    assert "member gone:1 is gone; its jobs go to others" in caplog.messages
