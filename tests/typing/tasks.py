"""Types of tasks, jobs and calls (row A13)."""

from datetime import timedelta
from typing import Any, assert_type

from tidemill import (
    Bound,
    Call,
    DeadJob,
    Event,
    Events,
    Failure,
    Gap,
    Health,
    Job,
    JobState,
    Keep,
    Member,
    Retry,
    ScheduleInfo,
    Task,
    Tidemill,
    current_job,
)

app = Tidemill("sqlite://")


@app.task
async def ping() -> None: ...


@app.task
def add(a: int, b: int = 0) -> int:
    return a + b


@app.task(queue="email", priority=0, timeout=30, key="to", retry=Retry(attempts=5, on=(OSError,)))
async def send(to: str, subject: str) -> str:
    return to + subject


@app.on_dead()
@app.on_dead(add, send)
@app.task
async def bury(dead: DeadJob) -> None: ...


async def right() -> None:
    assert_type(bury.enqueue(DeadJob(id="1", task="add", queue="q", failure=Failure())), Job[None])
    assert_type(add.using(on_dead=bury).enqueue(1), Job[int])
    assert_type(add(1, 2), int)
    assert_type(await send("a", "b"), str)
    assert_type(add.enqueue(1), Job[int])
    assert_type(add.enqueue(1).result(), int)
    assert_type(send.enqueue("a", subject="b"), Job[str])
    assert_type(await send.aenqueue("a", "b"), Job[str])
    assert_type(await (await send.aenqueue("a", "b")).aresult(timeout=3), str)
    assert_type(ping.enqueue(), Job[None])
    assert_type(send.call("a", "b"), Call[str])
    assert_type(app.enqueue_many(send.call(to, "b") for to in "xyz"), list[Job[str]])
    assert_type(await app.aenqueue_many([add.call(1)]), list[Job[int]])
    async with app as same:
        assert_type(same, Tidemill)
    assert_type(send.using(delay=5, priority=1).enqueue("a", "b"), Job[str])
    assert_type(add.using(delay=timedelta(minutes=1)).call(1), Call[int])
    assert_type(add.using(transaction=object()).enqueue(1), Job[int])
    assert_type(await send.using(transaction=object()).aenqueue("a", "b"), Job[str])
    assert_type(app.enqueue_many([add.call(1)], transaction=object()), list[Job[int]])
    assert_type(await app.aenqueue_many([send.call("a", "b")], transaction=object()), list[Job[str]])
    async for event in app.events(queue="q", task=add, states=[JobState.DEAD, "ready"], job=add.enqueue(1)):
        assert_type(event, Event | Gap)
    for event in app.events(task="add"):
        assert_type(event, Event | Gap)
    async with app.events() as events:
        assert_type(events, Events)
    current_job().complete(1, transaction=object())
    await current_job().acomplete(transaction=object())
    assert_type(app.members(), list[Member])
    assert_type((await app.amembers())[0].health, Health)
    app.queue("mail", keep=0, keep_dead=Keep(age=60))
    assert_type(
        app.cron("0 3 * * sun", tz="UTC")(app.every(3.0)(app.on_startup()(ping))).enqueue(), Job[None]
    )
    assert_type(app.schedules.list(), list[ScheduleInfo])
    assert_type(await app.schedules.arun("x"), Job[Any])
    app.schedules.put("x", add.call(1), every=timedelta(minutes=1), overlap="queue")
    bound: Bound[[int], int] = add.using(delay=1)
    del bound


def covariant(job: Job[object], call: Call[object]) -> None: ...


def accepts() -> None:
    covariant(add.enqueue(1), send.call("a", "b"))


def wrong() -> None:
    add("1")  # type: ignore[arg-type]
    add.enqueue("1")  # type: ignore[arg-type]
    add.enqueue()  # type: ignore[call-arg]
    add.enqueue(1, c=2)  # type: ignore[call-arg]
    send.enqueue("a")  # type: ignore[call-overload]
    send.call(1, "b")  # type: ignore[call-overload]
    add.using(dealy=5)  # type: ignore[call-arg]
    add.using(delay="5")  # type: ignore[arg-type]
    text: str = add.enqueue(1).result()  # type: ignore[assignment]
    app.enqueue_many([add(1)])  # type: ignore[arg-type]
    app.events(state="dead")  # type: ignore[call-arg]
    app.events("queue")  # type: ignore[call-arg]
    app.task(runs_in="moon")  # type: ignore[call-overload]
    app.cron("* * * * *", missed="never")  # type: ignore[arg-type]
    app.every(3)(lambda: None)  # type: ignore[type-var]
    app.on_dead(bury)(add)  # type: ignore[type-var]
    add.using(on_dead=add)  # type: ignore[arg-type]
    current_job().complete(1)  # type: ignore[call-arg]
    current_job().complete(1, object())  # type: ignore[call-arg]
    del text


def registered() -> None:
    task: Task[[int], int] = app.task(lambda n: n + 1)
    assert_type(task.enqueue(1), Job[int])
