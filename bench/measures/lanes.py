"""What keyed lanes that wait at a full gate cost those that do not.

The queue allows one running job per key. In the crowded engine all keys but a few have one job
running and one waiting. The timed jobs belong to as many open keys as the batch is large, since
one key never gives more than one job to a claim.
"""

from collections.abc import Sequence
from itertools import chain

from bench.claimer import Claimer
from bench.load import fill, new_jobs
from bench.plan import BULK, Plan
from bench.progress import Steps
from bench.rounds import Comparison, Question, Subject, Turn, Watch, compare
from tidemill.cli.bench.workers import declare
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.jobs.job import NewJob
from tidemill.model.queues.queue import Limit, QueueOptions

QUEUE = "tenants"
WANTED = 0.9
KEYED_SHARE = 4
"""A job behind a gate of its own costs several times that of a plain one: fewer will do."""
OPTIONS = QueueOptions(per_key=Limit(concurrency=1))


async def measure(plan: Plan, steps: Steps) -> list[Comparison]:
    """With the waiting lanes against without them."""
    crowded = await connect(plan.url("lanes"))
    empty = await connect(plan.url("lanes-empty"))
    try:
        for engine in (crowded, empty):
            await declare(engine, QUEUE, OPTIONS)
        await _park(crowded, plan, steps)
        advance = steps.begin("lanes", 2 * plan.rounds * len(plan.store.batches))
        busy, idle = await Claimer.join(crowded, QUEUE), await Claimer.join(empty, QUEUE)
        await _turn(crowded, busy, 100, plan.warm_up // KEYED_SHARE)()
        await _turn(empty, idle, 100, plan.warm_up // KEYED_SHARE)()
        comparisons = []
        for batch in plan.store.batches:
            case = f"{plan.lanes - 1:,} waiting, batch {batch}"
            question = Question(measure="lanes", case=case, against="none", wanted=WANTED)
            jobs = plan.jobs_at(batch) // (1 if batch == 1 else KEYED_SHARE)
            ours, theirs = _turn(crowded, busy, batch, jobs), _turn(empty, idle, batch, jobs)
            comparisons.append(await compare(question, ours, theirs, plan.rounds, advance))
        return comparisons
    finally:
        await empty.close()
        await crowded.close()


async def _park(engine: Engine, plan: Plan, steps: Steps) -> None:
    """For each waiting key one running job and one behind it."""
    keys = [f"waiting-{number}" for number in range(plan.lanes - 1)]
    advance = steps.begin(f"lanes: parking {len(keys):,}", len(keys))
    await fill(engine, _one_each(keys))
    holder = await Claimer.join(engine, QUEUE)
    while taken := await holder.take(BULK):
        advance(len(taken))
    await fill(engine, _one_each(keys))
    if await holder.take(1):
        raise RuntimeError("a lane gave a job although its gate is full")


def _turn(engine: Engine, claimer: Claimer, batch: int, jobs: int) -> Subject:
    """Fill as many open lanes as the batch is large, then time the drain."""
    keys = [f"open-{number}" for number in range(batch)]
    rounds = max(1, jobs // batch)

    async def turn() -> Turn:
        await fill(engine, list(chain.from_iterable(_one_each(keys) for _ in range(rounds))))
        with Watch() as watch:
            settled = await claimer.drain(batch)
        if settled != rounds * batch:
            raise RuntimeError(f"{rounds * batch} jobs were enqueued and {settled} settled")
        return watch.turn(settled)

    return turn


def _one_each(keys: Sequence[str]) -> list[NewJob]:
    return [job for key in keys for job in new_jobs(1, queue=QUEUE, key=key)]
