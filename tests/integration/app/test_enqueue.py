"""Enqueue, from every side."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from tests.integration.app.claimer import Hand, bodies, taken, with_hand
from tidemill import JobState, Rate, Retry, SyncInLoop, Tidemill
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect as open_engine
from tidemill.model.errors import BadInput, EngineUnavailable, PayloadTooLarge, UnknownJob, UnknownTask
from tidemill.task.catalogue import publish


@pytest.mark.every_engine
@pytest.mark.row("A1", "A13")
def test_a_call_is_enqueued_and_shown(app: Tidemill) -> None:
    @app.task(name="send", queue="email", key="to", timeout=30, retry=Retry(attempts=3))
    async def send(to: str, subject: str = "hi") -> str:
        return to + subject

    job = send.enqueue("a@b.c", subject="x")
    assert (job.state, job.task) == (None, "send")
    record = job.info()
    assert (record.state, job.state) == (JobState.READY, JobState.READY)
    assert (record.queue, record.key, record.timeout, record.max_attempts) == (
        "email",
        "a@b.c",
        timedelta(seconds=30),
        3,
    )
    assert (record.args, record.kwargs) == (("a@b.c",), {"subject": "x"})
    assert asyncio.run(send("a", "b")) == "ab"  # a plain call just runs the function


@pytest.mark.every_engine
@pytest.mark.row("A1")
def test_one_producers_enqueues_stay_in_order(app: Tidemill) -> None:
    task = app.task(name="t")(number)
    for n in range(20):
        task.enqueue(n)
    app.enqueue_many(task.call(n) for n in range(20, 2_520))
    jobs = asyncio.run(taken(app)) + asyncio.run(taken(app)) + asyncio.run(taken(app))
    assert [msgspec.json.decode(job.body)[0][0] for job in jobs] == list(range(2_520))


def number(n: int) -> int:
    return n


@pytest.mark.every_engine
@pytest.mark.row("A1")
def test_enqueues_of_many_threads_merge_and_none_is_lost(app: Tidemill) -> None:
    task = app.task(name="t")(number)
    threads = [
        threading.Thread(target=lambda first=first: [task.enqueue(first + n) for n in range(50)])
        for first in range(0, 500, 50)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [msgspec.json.decode(job.body)[0][0] for job in asyncio.run(taken(app))]
    assert sorted(numbers) == list(range(500))
    for first in range(0, 500, 50):  # each thread's own, in its order
        assert [n for n in numbers if first <= n < first + 50] == list(range(first, first + 50))


async def test_enqueues_of_a_loop_merge(app: Tidemill) -> None:
    task = app.task(name="t")(number)
    jobs = await asyncio.gather(*(task.aenqueue(n) for n in range(300)))
    assert len({job.id for job in jobs}) == 300
    assert [msgspec.json.decode(job.body)[0][0] for job in await taken(app)] == list(range(300))
    await app.aclose()


async def test_in_a_loop_the_blocking_form_is_refused_and_names_the_other(app: Tidemill) -> None:
    task = app.task(name="t")(number)
    job = await task.aenqueue(1)
    blocking: list[tuple[Any, str]] = [
        (lambda: task.enqueue(1), "aenqueue"),
        (lambda: app.enqueue("t", [1]), "aenqueue"),
        (lambda: app.enqueue_many([task.call(1)]), "aenqueue_many"),
        (job.info, "ainfo"),
        (job.result, "aresult"),
        (job.cancel, "acancel"),
        (job.replay, "areplay"),
        (app.close, "aclose"),
    ]
    for call, other in blocking:
        with pytest.raises(SyncInLoop, match=rf"await {other}\("):
            call()
    assert len(await taken(app)) == 1
    await app.aclose()


@pytest.mark.every_engine
@pytest.mark.row("A2")
def test_a_call_may_say_how_its_job_is_to_be(app: Tidemill) -> None:
    task = app.task(name="t", priority=3, timeout=5)(number)
    chosen = uuid4()
    at = datetime.now(UTC) + timedelta(hours=2)
    job = task.using(priority=1, queue="other", at=at, id=chosen, timeout=timedelta(minutes=1)).enqueue(1)
    record = job.info()
    assert (job.uuid, record.state, record.priority, record.queue) == (chosen, JobState.SCHEDULED, 1, "other")
    assert (record.due_at, record.timeout) == (at, timedelta(minutes=1))
    assert task.using(delay=60).using(priority=0).enqueue(1).info().state is JobState.SCHEDULED
    policy = Retry(attempts=2, backoff="fixed", base=7)
    retried = task.using(retry=policy, tags=["night"]).enqueue(1).info()
    assert (retried.max_attempts, retried.retry, retried.tags) == (2, policy, ("night",))
    assert (retried.priority, retried.timeout) == (3, timedelta(seconds=5))
    task.using(id=chosen).enqueue(1)  # the same id: the first one stays
    assert job.info().args == (1,)
    for after in (job, [job], job.id, job.uuid, (one for one in [job])):
        assert task.using(after=after).enqueue(1).info().state is JobState.BLOCKED


@pytest.mark.row("E1")
def test_options_go_by_call_then_task_then_queue_then_app(app: Tidemill) -> None:
    app.queue("q", timeout=20, retry=Retry(attempts=4), rate="5/s")
    assert app.registry.queues["q"].rate == Rate(5)
    plain = app.task(name="plain", queue="q")(number)
    own = app.task(name="own", queue="q", timeout=10, retry=Retry(attempts=3))(lambda n: n)
    found = [
        plain.using(queue="elsewhere").enqueue(1).info(),
        plain.enqueue(1).info(),
        own.enqueue(1).info(),
        own.using(timeout=1, retry=Retry(attempts=2)).enqueue(1).info(),
    ]
    assert [(job.timeout, job.max_attempts) for job in found] == [
        (None, 5),
        (timedelta(seconds=20), 4),
        (timedelta(seconds=10), 3),
        (timedelta(seconds=1), 2),
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"delay": -1}, {"delay": "5"}, {"at": datetime(2030, 1, 1)}, {"at": 5}, {"priority": 11},  # noqa: DTZ001
        {"queue": "no spaces"}, {"timeout": 0}, {"retry": 3}, {"id": "not-a-uuid"}, {"key": "a\x00"},
        {"expires": 0}, {"after": "x"}, {"tags": "x"}, {"nope": 1},
        {"delay": 1, "at": datetime(2030, 1, 1, tzinfo=UTC)},
        {"parent_died": "shrug"},
    ],
    ids=str,
)  # fmt: skip
def test_bad_options_are_refused_and_nothing_is_stored(app: Tidemill, options: dict[str, Any]) -> None:
    parent = app.task(name="p")(lambda: None).enqueue()
    task = app.task(name="t", queue="t")(number)
    if "parent_died" in options:
        options = {**options, "after": [parent]}
    with pytest.raises(BadInput):
        task.using(**options).enqueue(1)
    assert asyncio.run(taken(app, "t")) == []


def test_a_payload_over_the_limit_is_refused(app: Tidemill) -> None:
    task = app.task(name="t")(lambda text: None)
    with pytest.raises(PayloadTooLarge, match="pass a reference"):
        task.enqueue("x" * (1 << 20))
    assert task.enqueue("x" * ((1 << 20) - 20)).info().state is JobState.READY


@pytest.mark.every_engine
def test_one_bad_call_among_merged_ones_fails_alone(app: Tidemill) -> None:
    task = app.task(name="t")(number)

    async def together() -> list[Any]:
        ghost = app.job(uuid4())
        calls = [task.aenqueue(1), task.using(after=[ghost]).aenqueue(2), task.aenqueue(3)]
        return await asyncio.gather(*calls, return_exceptions=True)

    first, bad, last = asyncio.run(together())
    assert isinstance(bad, BadInput)
    assert first.info().args == (1,)
    assert last.info().args == (3,)


def test_a_task_known_by_name_only(app: Tidemill) -> None:
    with pytest.raises(UnknownTask, match="give queue="):
        app.enqueue("shop.send", ["a"])
    assert app.enqueue("shop.later", [1], queue="q").info().queue == "q"
    code = Tidemill(app.url)

    @code.task(name="shop.send", queue="email", priority=2, key="to", retry=Retry(attempts=2))
    def send(to: str, subject: str = "x") -> None: ...

    asyncio.run(with_hand(app, lambda hand: publish(hand.engine, code.registry, source="code", began=1)))
    fresh = Tidemill(app.url)
    record = fresh.enqueue("shop.send", ["a"], {"subject": "y"}).info()
    assert (record.queue, record.priority, record.key, record.max_attempts) == ("email", 2, "a", 2)
    assert (record.args, record.kwargs) == (("a",), {"subject": "y"})
    with pytest.raises(UnknownTask, match=r"did you mean 'shop\.send'"):
        fresh.enqueue("shop.sned")
    wrong: list[tuple[list[Any], dict[str, Any]]] = [([], {}), (["a", "b", "c"], {}), (["a"], {"z": 1})]
    for args, kwargs in [*wrong, (["a"], {"to": "b"}), ([datetime.now(UTC)], {})]:
        with pytest.raises(BadInput):
            fresh.enqueue("shop.send", args, kwargs)
    fresh.close()


def test_a_task_is_known_by_name_as_soon_as_it_is_published(app: Tidemill) -> None:
    """Also to a program that has read the catalogue a moment before."""
    fresh = Tidemill(app.url, namespace=app.namespace)
    with pytest.raises(UnknownTask):
        fresh.enqueue("t", [1])
    app.task(name="t", priority=2)(number)
    asyncio.run(with_hand(app, lambda hand: publish(hand.engine, app.registry, source="app", began=1)))
    assert fresh.enqueue("t", [1]).info().priority == 2
    fresh.close()


def test_by_name_in_a_process_that_has_the_code_checks_types_too(app: Tidemill) -> None:
    app.task(name="t")(number)
    with pytest.raises(BadInput, match="Expected `int`"):
        app.enqueue("t", ["one"])
    assert app.enqueue("t", [1], delay=3).info().state is JobState.SCHEDULED


def test_declared_queues_and_tasks_are_published(app: Tidemill) -> None:
    app.queue("email", concurrency=5, rate="100/m", keep_body=False)
    app.task(name="t", queue="email")(number)

    async def published(hand: Hand) -> Any:
        await publish(hand.engine, app.registry, source="app", began=1)
        await publish(hand.engine, app.registry, source="app", began=1)
        return await hand.engine.queues.list(), await hand.engine.tasks.list()

    queues, tasks = asyncio.run(with_hand(app, published))
    assert {queue.name: queue.options.concurrency for queue in queues} == {"email": 5}
    assert [(task.name, task.queue) for task in tasks] == [("t", "email")]


def test_an_unknown_job_is_said_to_be_unknown(app: Tidemill) -> None:
    with pytest.raises(UnknownJob):
        app.job(uuid4()).info()
    with pytest.raises(BadInput):
        app.job("nonsense")


def test_enqueue_many_takes_calls_only_and_nothing_of_a_bad_chunk(app: Tidemill) -> None:
    task = app.task(name="t")(number)
    with pytest.raises(BadInput, match=r"task\.call"):
        app.enqueue_many([task.call(1), 2])  # type: ignore[arg-type]
    assert asyncio.run(taken(app)) == []
    assert app.enqueue_many([]) == []
    assert bodies(asyncio.run(taken(app))) == []


@pytest.mark.every_engine
def test_a_closed_app_opens_anew(app: Tidemill, engine_mode: str) -> None:
    task = app.task(name="t")(number)
    first = task.enqueue(1)
    app.close()
    task.enqueue(2)
    if engine_mode == "sqlite-file":
        assert first.info().state is JobState.READY


@pytest.mark.every_engine
def test_an_engine_that_is_away_for_a_moment_at_the_first_call_is_waited_for(
    app: Tidemill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that starts while its server does: not worth an error."""
    tries: list[str] = []

    async def connect(url: str, **options: Any) -> Engine:
        tries.append(url)
        if len(tries) < 3:
            raise EngineUnavailable("it is starting")
        return await open_engine(url, **options)

    monkeypatch.setattr("tidemill.app.access.link.connect", connect)

    @app.task(name="works")
    def works() -> None: ...

    job = works.enqueue()
    job.info()
    assert (job.state, len(tries)) == (JobState.READY, 3)
