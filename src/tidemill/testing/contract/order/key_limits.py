"""Keys with limits of their own: each in the place of the limit that all other keys have."""

from collections import Counter
from collections.abc import Sequence

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.jobs.run import ClaimedJob
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.testing.contract.fixtures import Claimant, Clock, a_job, configure

ONE = Limit(concurrency=1)


def by_key(jobs: Sequence[ClaimedJob]) -> dict[str, int]:
    return dict(Counter(job.key or "-" for job in jobs))


@pytest.mark.row("F4")
async def test_one_key_has_a_wider_limit_and_one_has_none(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    limits = {"g": Limit(concurrency=3), "x": Limit()}
    await configure(engine, "q", QueueOptions(per_key=ONE, limits=limits), now=clock.now)
    await engine.jobs.enqueue([a_job(key=key) for key in "gggggxxxxxxaab"], now=clock.now)
    first = await claimant.take()
    assert by_key(first) == {"g": 3, "x": 6, "a": 1, "b": 1}
    assert await claimant.take() == []
    await claimant.complete(*(job for job in first if job.key == "g"))
    assert by_key(await claimant.take()) == {"g": 2}


@pytest.mark.row("F4")
async def test_only_the_named_keys_are_limited(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(limits={"g": ONE, "": Limit(concurrency=2)}), now=clock.now)
    jobs = [a_job(key=None if key == "-" else key) for key in "ggaaa---"]
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert by_key(await claimant.take()) == {"g": 1, "a": 3, "-": 2}
    assert await claimant.take() == []


@pytest.mark.row("F4")
async def test_a_key_has_a_rate_of_its_own(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    limits = {"g": Limit(rate=Rate(3, per=10.0)), "c": Limit(concurrency=2)}
    options = QueueOptions(per_key=Limit(rate=Rate(1, per=1.0)), limits=limits)
    await configure(engine, "q", options, now=clock.now)
    await engine.jobs.enqueue([a_job(key=key) for key in "gggggaabbccc"], now=clock.now)
    claim = await claimant.claim()
    assert by_key(claim.jobs) == {"g": 3, "a": 1, "b": 1, "c": 2}
    assert claim.wait
    clock.now += claim.wait  # the short windows open
    assert by_key(await claimant.take()) == {"a": 1, "b": 1}
    clock.forward(10)
    assert by_key(await claimant.take()) == {"g": 2}


async def test_a_job_by_its_id_passes_its_keys_own_gate(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    limits = {"g": Limit(concurrency=2), "x": Limit()}
    await configure(engine, "q", QueueOptions(per_key=ONE, limits=limits), now=clock.now)
    jobs = [a_job(key=key) for key in "gggxxxaa"]
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert by_key(await claimant.take(ids=[job.id for job in jobs])) == {"g": 2, "x": 3, "a": 1}


@pytest.mark.parametrize(
    ("before", "after", "runs"),
    [
        (QueueOptions(per_key=ONE), QueueOptions(per_key=ONE, limits={"g": Limit(concurrency=3)}), {"g": 2}),
        (QueueOptions(per_key=ONE), QueueOptions(per_key=ONE, limits={"g": Limit()}), {"g": 4}),
        (
            QueueOptions(per_key=ONE, limits={"g": Limit(concurrency=3)}),
            QueueOptions(per_key=Limit(concurrency=4)),
            {"g": 1, "a": 3},
        ),
        (QueueOptions(limits={"g": ONE}), QueueOptions(fair_by="key"), {"g": 4}),
        (QueueOptions(), QueueOptions(limits={"g": Limit(concurrency=2), "a": Limit(concurrency=5)}), {}),
    ],
    ids=["wider", "none", "back to all", "none at all", "new"],
)
async def test_a_changed_limit_of_a_key_counts_what_runs(
    engine: Engine, clock: Clock, claimant: Claimant, before: QueueOptions, after: QueueOptions, runs: object
) -> None:
    await configure(engine, "q", before, now=clock.now)
    await engine.jobs.enqueue([a_job(key=key) for key in "gggggaaaa"], now=clock.now)
    await claimant.take()
    await configure(engine, "q", after, now=clock.now)
    assert by_key(await claimant.take()) == runs


@pytest.mark.parametrize("named", [False, True], ids=["of all", "of one"])
async def test_another_window_counts_what_was_started(
    engine: Engine, clock: Clock, claimant: Claimant, named: bool
) -> None:
    """The log of the key that is named goes by its own windows, that of the others by the windows of all."""
    old, new = Limit(rate=Rate(2, per=1.0)), Limit(rate=Rate(2, per=60.0))
    kept = Limit(rate=Rate(2, per=5.0))
    before = QueueOptions(per_key=kept if named else old, limits={"g": old if named else kept})
    after = QueueOptions(per_key=kept if named else new, limits={"g": new if named else kept})
    await configure(engine, "q", before, now=clock.now)
    await engine.jobs.enqueue([a_job(key=key) for key in "ggggaaaa"], now=clock.now)
    assert by_key(await claimant.take()) == {"g": 2, "a": 2}
    await configure(engine, "q", after, now=clock.now)
    clock.forward(5.06)
    assert by_key(await claimant.take()) == ({"a": 2} if named else {"g": 2})
    clock.forward(55.7)
    assert by_key(await claimant.take()) == ({"g": 2} if named else {"a": 2})
