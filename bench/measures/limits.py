"""What limits cost: those that never bind, those of queues that are empty, and those that are full.

Both subjects of a comparison drain jobs of the same number of keys. Processor time counts that of the store's
server too: what a limit costs is work, not waiting.
"""

from typing import NamedTuple

from bench.claimer import Claimer
from bench.load import fill, new_jobs
from bench.plan import BULK, Plan
from bench.progress import Steps
from bench.rounds import Comparison, Question, Subject, Turn, Watch, compare
from tidemill.cli.bench.workers import declare
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.queues.queue import Limit, QueueOptions, Rate

BUSY = "busy"
EMPTY = 30
CROWD = 100_000
"""Jobs behind a full gate, at scale 1."""
KEYS, MANY_KEYS, OPEN_KEYS = 50, 1_000, 10
NEVER = 1_000_000
"""A limit that never binds."""
HARDLY = QueueOptions(concurrency=5)
ONE = QueueOptions(per_key=Limit(concurrency=1))
KEYED = QueueOptions(per_key=Limit(concurrency=2, rate=Rate(NEVER, per=10.0)), fair_by="key")

Case = tuple[str, float | None, float | None, "Setting", "Setting"]


class Setting:
    """One subject: a store of its own, in which something stands beside the jobs that are timed."""

    def __init__(
        self,
        name: str,
        *,
        options: QueueOptions | None = None,
        others: int = 0,
        theirs: QueueOptions = HARDLY,
        held: int = 0,
        waiting: int = 0,
        keys: int = KEYS,
    ) -> None:
        """`options` are those of the timed queue; there are so many `others`, with `theirs`. So many keys of
        the timed queue are `held` full; so many jobs are `waiting` in the first other, which is full."""
        self.name, self.options, self.others, self.theirs = name, options, others, theirs
        self.held, self.waiting, self.keys = held, waiting, keys

    async def open(self, plan: Plan) -> "Opened":
        """Makes the store and what stands in the way."""
        engine = await connect(plan.url(f"limits-{self.name}"))
        others = [f"other-{number:02}" for number in range(self.others)]
        if self.options is not None:
            await declare(engine, BUSY, self.options)
        for queue in others:
            await declare(engine, queue, self.theirs)
        await self._hold(engine, BUSY, self.held, 2)
        if self.waiting:
            await fill(engine, new_jobs(_crowd(plan, self.waiting), queue=others[0], key="k"))
            await _exhaust(await Claimer.join(engine, others[0]))
        return Opened(plan, engine, await Claimer.join(engine, BUSY, *others), self.keys)

    async def _hold(self, engine: Engine, queue: str, keys: int, each: int) -> None:
        jobs = [
            job for number in range(keys) for job in new_jobs(each + 1, queue=queue, key=f"full-{number}")
        ]
        await fill(engine, jobs)
        if keys:
            await _exhaust(await Claimer.join(engine, queue))


class Opened(NamedTuple):
    """A setting that stands."""

    plan: Plan
    engine: Engine
    claimer: Claimer
    keys: int

    def turn(self, batch: int) -> Subject:
        """Each turn fills the queue and times its drain."""
        count = self.plan.jobs_at(batch) // 2

        async def turn() -> Turn:
            names = [f"open-{number % self.keys}" for number in range(count)]
            await fill(self.engine, [job for key in names for job in new_jobs(1, queue=BUSY, key=key)])
            with Watch(self.plan.store.cpu_s) as watch:
                settled = await self.claimer.drain(batch)
            if settled != count:
                raise RuntimeError(f"{count} jobs were enqueued and {settled} settled")
            return watch.turn(settled)

        return turn


def cases(plan: Plan) -> list[Case]:
    """What, the least rate and the most processor time (as multiples of the reference's), the setting, its
    reference."""
    crowd = f"{_crowd(plan, CROWD):,} jobs"
    plain, keyed = Setting("plain"), Setting("keyed", options=KEYED)
    never = {
        "concurrency": QueueOptions(concurrency=NEVER),
        "rate": QueueOptions(rate=Rate(NEVER, per=1.0)),
        "per_key": QueueOptions(per_key=Limit(concurrency=NEVER)),
    }
    return [
        ("30 empty limited queues", 0.9, None, Setting("empty", others=EMPTY), plain),
        ("30 empty plain queues", None, None, Setting("bare", others=EMPTY, theirs=QueueOptions()), plain),
        *(
            (f"{name} that never binds", 0.6, None, Setting(f"never-{name}", options=options), plain)
            for name, options in never.items()
        ),
        (
            f"{crowd} behind a full queue",
            0.8,
            None,
            Setting("full", others=1, theirs=QueueOptions(concurrency=1), waiting=CROWD),
            Setting("alone", others=1),
        ),
        (
            f"{crowd} of a full key",
            0.8,
            None,
            Setting("full-key", others=1, theirs=ONE, waiting=CROWD),
            Setting("alone-key", others=1),
        ),
        ("50 keys with rate and concurrency", None, 4.0, keyed, plain),
        (
            "1,000 keys, 990 of them full",
            0.9,
            1.1,
            Setting("many", options=KEYED, held=MANY_KEYS - OPEN_KEYS, keys=OPEN_KEYS),
            Setting("ten", options=KEYED, keys=OPEN_KEYS),
        ),
    ]


async def measure(plan: Plan, steps: Steps) -> list[Comparison]:
    """With each limit against without it."""
    advance = steps.begin("limits", 2 * plan.rounds * len(plan.store.batches) * len(cases(plan)))
    comparisons = []
    for case, least, most, setting, reference in cases(plan):
        ours, theirs = await setting.open(plan), await reference.open(plan)
        try:
            for batch in plan.store.batches:
                question = Question(
                    measure="limits", case=f"{case}, batch {batch}", against="none", wanted=least,
                    cpu_wanted=most,
                )  # fmt: skip
                await ours.turn(batch)()
                await theirs.turn(batch)()
                found = await compare(question, ours.turn(batch), theirs.turn(batch), plan.rounds, advance)
                comparisons.append(found)
        finally:
            await theirs.engine.close()
            await ours.engine.close()
    return comparisons


def _crowd(plan: Plan, count: int) -> int:
    return max(2, round(count * plan.scale))


async def _exhaust(holder: Claimer) -> None:
    """Take and keep what the gates let through. The first claims may still move jobs to their lanes."""
    while not await holder.take(BULK):
        pass
    while await holder.take(BULK):
        pass
