"""`enqueue_many`: what is stored if something happens on the way."""

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import msgspec
import pytest

from tests.integration.app.claimer import with_hand
from tests.integration.app.test_loops import all_of, outside_memory
from tidemill import Tidemill
from tidemill.app.task import Call
from tidemill.model.errors import UnknownParent


@outside_memory
async def test_blocks_may_come_and_go_meanwhile(app: Tidemill) -> None:
    task = app.task(name="t")(lambda n: n)
    many = asyncio.create_task(app.aenqueue_many(task.call(number) for number in range(20_000)))
    blocks = 0
    while not many.done():
        async with app:
            await asyncio.sleep(0)
        blocks += 1
    jobs = await many
    assert blocks > 1
    order = [job.id for _ in range(7) for job in await with_hand(app, all_of)]
    assert order == [job.uuid.bytes for job in jobs]


@outside_memory
async def test_after_a_refused_chunk_nothing_later_is_stored(app: Tidemill) -> None:
    task = app.task(name="t")(lambda n: n)

    def calls() -> Iterator[Call[int]]:
        for number in range(4_000):
            yield (task.using(after=[uuid4()]) if number == 1_005 else task).call(number)

    def blocking() -> None:
        app.enqueue_many(calls())

    async def awaiting() -> None:
        async with app:
            await app.aenqueue_many(calls())

    for many in (awaiting, lambda: asyncio.to_thread(blocking)):
        with pytest.raises(UnknownParent) as refused:
            await many()
        stored, failed = refused.value.__notes__
        assert stored == "enqueue_many: the first 1,000 calls were stored"
        assert failed.startswith("enqueue_many: the 1,000 after them failed: UnknownParent")
        order = [msgspec.json.decode(job.body)[0][0] for job in await with_hand(app, all_of)]
        assert order == list(range(1_000))


@outside_memory
def test_the_last_chunk_counts_only_if_it_was_stored(app: Tidemill) -> None:
    task = app.task(name="t")(lambda n: n)
    last = [task.call(number) for number in range(1_000)] + [task.using(after=[uuid4()]).call(1_000)]
    with pytest.raises(UnknownParent) as refused:
        app.enqueue_many(last)
    assert refused.value.__notes__[0] == "enqueue_many: the first 1,000 calls were stored"
