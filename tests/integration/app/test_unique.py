"""Unique, debounce and throttle as programs write them."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.app.claimer import record_of, with_hand
from tidemill import BadInput, IdTaken, Job, NotUnique, Tidemill
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.unique import UniqueKey
from tidemill.model.time import SECOND
from tidemill.task.catalogue import publish

in_memory = pytest.mark.parametrize("engine_mode", ["sqlite-memory"], indirect=True)
"""For what the app does, whatever the engine."""


@pytest.mark.row("F12")
@pytest.mark.every_engine
def test_the_same_arguments_are_the_same_job(app: Tidemill) -> None:
    @app.task(name="t", unique=True)
    def task(a: int, b: str = "x", *, c: set[str] | None = None) -> None: ...

    job = task.enqueue(1)
    assert job.created is True
    for same in (
        task.enqueue(1), task.enqueue(a=1), task.enqueue(1, "x"), task.using(priority=1).enqueue(1, b="x"),
        app.enqueue("t", [1]), app.enqueue("t", kwargs={"a": 1, "b": "x"}),
    ):  # fmt: skip
        assert (same.id, same.created) == (job.id, False)
    assert task.enqueue(2).created is True
    words = {"one", "two", "three"}
    assert task.enqueue(1, c=words) == task.enqueue(1, c={"three", "two", "one"})
    assert job.info().unique == '{"a":1,"b":"x","c":null}'


@pytest.mark.row("F12")
async def test_the_same_in_async_code(app: Tidemill) -> None:
    @app.task(name="t", unique="tenant")
    async def task(tenant: str, number: int) -> None: ...

    async with app:
        jobs = await asyncio.gather(*[task.aenqueue("acme", number) for number in range(20)])
    assert len(set(jobs)) == 1
    assert sorted(str(job.created) for job in jobs) == ["False"] * 19 + ["True"]


@in_memory
def test_a_call_whose_answer_was_lost_has_stored_its_job(
    app: Tidemill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repeat finds its id known. Nobody else has it: it was drawn for this call."""
    task = app.task(name="t")(lambda n: None)
    enqueue = app._link.enqueue_here
    monkeypatch.setattr(app._link, "enqueue_here", lambda jobs: enqueue(jobs) and enqueue(jobs))
    assert task.enqueue(1).created is True
    assert task.using(unique="x").enqueue(2).created is True
    assert task.using(unique="x").enqueue(2).created is False
    assert task.using(id=uuid4()).enqueue(3).created is False, "another program may have stored it"


@in_memory
def test_parameters_make_the_key(app: Tidemill) -> None:
    @app.task(name="t", unique=("a", "b"))
    def task(a: int, b: int = 2, c: int = 3) -> None: ...

    job = task.enqueue(1)
    assert task.enqueue(1, 2, 9) == job
    assert task.enqueue(1, 3) != job
    assert record_of(job).unique == '{"a":1,"b":2}'


@in_memory
def test_long_arguments_make_a_key_of_bounded_length(app: Tidemill) -> None:
    task = app.task(name="t", unique=True)(lambda text: None)
    one, other = task.enqueue("x" * 500), task.enqueue("x" * 501)
    assert one != other
    assert task.enqueue("x" * 500) == one
    assert len(record_of(one).unique or "") < 200


@in_memory
def test_a_text_is_the_key(app: Tidemill) -> None:
    task = app.task(name="t")(lambda n: None)
    job = task.using(unique="nightly").enqueue(1)
    assert task.using(unique="nightly").enqueue(2) == job
    assert app.enqueue("t", [3], unique="nightly") == job
    assert app.task(name="u")(lambda n: None).using(unique="nightly").enqueue(1) != job, "another task's"
    assert task.enqueue(1) != job
    always = app.task(name="v", unique=True)(lambda n: None)
    assert always.enqueue(1) == always.enqueue(1)
    assert always.using(unique=False).enqueue(1).created is True
    assert record_of(always.using(unique=None).enqueue(1)).unique is None


@in_memory
def test_refuse_names_the_job_that_is_there(app: Tidemill) -> None:
    task = app.task(name="t", unique=True, on_conflict="refuse")(lambda n: None)
    job = task.enqueue(1)
    with pytest.raises(NotUnique, match="is held by the job") as refused:
        task.enqueue(1)
    assert refused.value.id == job.id
    with pytest.raises(NotUnique):
        app.enqueue_many([task.call(2), task.call(1)])
    assert task.enqueue(2).created is True, "nothing of the chunk was stored"
    assert task.using(on_conflict="existing").enqueue(1) == job


@pytest.mark.row("F12")
@pytest.mark.every_engine
def test_debounce_keeps_the_last_call(app: Tidemill) -> None:
    task = app.task(name="t", debounce=100, debounce_max=150)(lambda n: None)
    job = task.enqueue(1)
    again = task.enqueue(1)
    assert (again.id, again.created) == (job.id, False)
    other = task.using(unique="all").enqueue(1)
    assert task.using(unique="all", priority=2).enqueue(2) == other
    shown = other.info()
    assert (shown.args, shown.priority, shown.state) == ((2,), 2, JobState.SCHEDULED)
    record = record_of(other)
    assert record.due_at is not None
    assert 100 * SECOND <= record.due_at - record.created_at <= 150 * SECOND


@pytest.mark.row("F12")
@in_memory
def test_what_options_become(app: Tidemill) -> None:
    task = app.task(name="t")(lambda n: None)

    def key_of(**options: Any) -> tuple[UniqueKey | None, int]:
        job = task.using(**options).call(1).job
        return job.unique, job.delay

    assert key_of(unique="k") == (UniqueKey(key="k"), 0)
    assert key_of(unique="k", unique_until="start", delay=2) == (
        UniqueKey(key="k", until="start"),
        2 * SECOND,
    )
    assert key_of(unique="k", unique_for=3, on_conflict="refuse") == (
        UniqueKey(key="k", period=3 * SECOND, on_conflict="refuse"), 0,
    )  # fmt: skip
    assert key_of(unique="k", throttle=3) == (UniqueKey(key="k", period=3 * SECOND), 0)
    assert key_of(debounce=3)[1] == 3 * SECOND
    assert key_of(unique="k", debounce=3, debounce_max=5)[0] == UniqueKey(
        key="k", until="start", on_conflict="replace", latest=5 * SECOND
    )
    assert task.using(unique="k").using(on_conflict="replace").call(1).job.unique == UniqueKey(
        key="k", on_conflict="replace"
    )


@in_memory
def test_many_at_once_have_their_handles(app: Tidemill) -> None:
    task = app.task(name="t", unique=True)(lambda n: None)
    plain = app.task(name="u")(lambda n: None)
    jobs = app.enqueue_many(call(n % 3) for n in range(2_400) for call in (task.call, plain.call))
    assert len({job.id for job in jobs[::2]}) == 3
    assert [job.created for job in jobs[::2]] == [True] * 3 + [False] * 2_397
    assert all(job.created for job in jobs[1::2])
    assert len(set(jobs[1::2])) == 2_400


@in_memory
def test_an_id_counts_first(app: Tidemill) -> None:
    task = app.task(name="t", unique=True)(lambda n: None)
    chosen = uuid4()
    job = task.using(id=chosen).enqueue(1)
    assert (task.using(id=chosen).enqueue(1).created, job.id) == (False, str(chosen))
    with pytest.raises(IdTaken):
        task.using(id=chosen).enqueue(2)
    assert task.using(id=uuid4()).enqueue(1) == job, "an id that is new meets the job of the key"


@in_memory
def test_equal_numbers_are_equal_keys_by_name_too(app: Tidemill) -> None:
    task = app.task(name="t", unique=True)(at_rate)
    job = task.enqueue()
    asyncio.run(with_hand(app, lambda hand: publish(hand.engine, app.registry, source="app", began=1)))
    stranger = Tidemill(app.url, namespace=app.namespace)
    assert job == task.enqueue(1) == task.enqueue(1.0, [2.0]) == stranger.enqueue("t", [1, [2]])
    assert job == stranger.enqueue("t") != task.enqueue(1.5)
    stranger.close()


def at_rate(rate: float = 1, others: list[float] = [2]) -> None:  # noqa: B006
    """A default is not made a float by its annotation, an argument is."""


@in_memory
def test_by_name_from_the_catalogue(app: Tidemill) -> None:
    @app.task(name="t", unique=("a", "words"))
    def task(a: int, words: set[str], c: int = 0) -> None: ...

    here = task.enqueue(1, {"x", "y", "z"})
    asyncio.run(with_hand(app, lambda hand: publish(hand.engine, app.registry, source="app", began=1)))
    stranger = Tidemill(app.url, namespace=app.namespace)
    there = stranger.enqueue("t", [1, ["z", "x", "y"]], {"c": 7})
    assert (there.id, there.created) == (here.id, False)
    with pytest.raises(BadInput, match="leave unique_for= and unique_until= out"):
        stranger.enqueue("t", [1, []], throttle=5, unique_for=5)
    stranger.close()


@in_memory
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"debounce": 0}, "debounce= must be longer than 0 s"),
        ({"debounce": -1}, "debounce=: "),
        ({"debounce": 5, "debounce_max": 4}, "debounce_max=4 is shorter than debounce=5"),
        ({"debounce_max": 4}, "give both"),
        ({"debounce": 5, "throttle": 5}, "give one of them"),
        ({"debounce": 5, "unique_for": 5}, "give one of them"),
        ({"debounce": 5, "unique_until": "end"}, 'unique_until="start"'),
        ({"debounce": 5, "on_conflict": "refuse"}, 'on_conflict="replace"'),
        ({"throttle": 5, "unique_for": 5}, "leave unique_for="),
        ({"throttle": 5, "on_conflict": "replace"}, "first call win"),
        ({"throttle": "5/m"}, "throttle=: "),
        ({"unique": True, "unique_for": 5, "unique_until": "end"}, "give one of them"),
        ({"unique_for": 5}, "give unique=True"),
        ({"on_conflict": "refuse"}, "give unique=True"),
        ({"unique": True, "on_conflict": "keep"}, 'on_conflict is "existing", "replace" or "refuse"'),
        ({"unique": True, "unique_until": "never"}, 'unique_until is "end" or "start"'),
    ],
)
def test_what_contradicts_is_refused_where_it_is_written(
    app: Tidemill, options: dict[str, Any], message: str
) -> None:
    task = app.task(name="t")(lambda n: None)
    with pytest.raises(BadInput, match=message):
        task.using(**options)
    with pytest.raises(BadInput, match=message):
        app.task(name="u", **options)(lambda n: None)
    with pytest.raises(BadInput, match=message):
        app.enqueue("t", [1], **options)


@in_memory
def test_what_only_calls_or_only_tasks_say(app: Tidemill) -> None:
    task = app.task(name="t")(lambda n: None)
    parent: Job[Any] = task.enqueue(0)
    for options, message in (
        ({"unique": ("n",)}, "which arguments make the key"),
        ({"unique": ""}, "1 to 200 characters"),
        ({"unique": False, "unique_for": 5}, "goes with nothing else"),
        ({"debounce": 5, "delay": 3}, "leave delay= and at= out"),
        ({"debounce": 5, "at": datetime(2040, 1, 1, tzinfo=UTC)}, "leave delay= and at= out"),
        ({"debounce": 5, "after": parent}, "after= cannot"),
        ({"unique": "k", "on_conflict": "replace", "transaction": object()}, "transaction= cannot"),
    ):
        with pytest.raises(BadInput, match=message):
            task.using(**options)
    wrong: list[tuple[Any, str]] = [
        ("m", "has no parameter 'm'"), (("n", "m"), "'m'"), (7, "takes True"), ((), "True"),
    ]  # fmt: skip
    for bad, message in wrong:
        with pytest.raises(BadInput, match=message):
            app.task(name="u", unique=bad)(lambda n: None)
    with pytest.raises(BadInput, match="nobody would get the error"):
        app.every(5)(app.task(name="v", unique=True, on_conflict="refuse")(lambda: None))
