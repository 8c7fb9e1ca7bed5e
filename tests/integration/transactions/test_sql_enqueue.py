"""The SQL function `enqueue`: from any language, in any transaction. Everything here is plain SQL."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import errors

from tests.integration.app.claimer import record_of, taken, with_hand
from tidemill import JobFailed, JobState, Keep, Retry, Tidemill, UnknownJob
from tidemill.engine.registry import connect as open_engine
from tidemill.model.queues.queue import QueueOptions
from tidemill.task.catalogue import publish
from tidemill.testing.contract.fixtures import configure

pytestmark = pytest.mark.parametrize("engine_mode", ["postgres-server"])

Sql = Callable[..., Any]


@pytest.fixture
def app(app: Tidemill) -> Tidemill:
    """With tasks that a worker has published."""

    @app.task(
        name="send_email", queue="email", priority=2, timeout=30, key="user.id", retry=Retry(attempts=7)
    )
    async def send_email(user: dict[str, Any], subject: str, *, tries: int = 1) -> str:
        return f"{user['id']}: {subject} x{tries}"

    @app.task(name="plain")
    async def plain(*args: int, **more: int) -> int:
        return sum(args) + sum(more.values())

    async def put() -> None:
        engine = await open_engine(app.url)
        options = QueueOptions(timeout=5.5, retry=Retry(attempts=3), keep_completed=Keep(count=10))
        await configure(engine, "slow", options)
        await publish(engine, app.registry, source="app", began=1)
        await engine.close()

    asyncio.run(put())
    return app


@pytest.fixture
def connection(app: Tidemill, url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url) as connection:
        yield connection


@pytest.fixture
def sql(connection: psycopg.Connection[Any]) -> Sql:
    """Runs one statement; the first column of its first row."""

    def run(text: str, *parameters: Any) -> Any:
        row = connection.execute(text, parameters).fetchone()
        assert row is not None
        return row[0]

    return run


@pytest.mark.row("F7")
def test_a_worker_completes_it(app: Tidemill, connection: psycopg.Connection[Any], sql: Sql) -> None:
    job_id = sql(
        """SELECT tidemill.enqueue('send_email', '[{"id": 7}]', '{"subject": "h\u00e9llo", "tries": 2}')"""
    )
    assert isinstance(job_id, UUID)
    assert job_id.version == 7
    assert abs((job_id.int >> 80) / 1_000 - time.time()) < 60
    job = app.job(job_id)
    with pytest.raises(UnknownJob):
        record_of(job)
    connection.commit()
    record = record_of(job)
    assert (record.state, record.queue, record.priority) == (JobState.READY, "email", 2)
    assert (record.timeout, record.max_attempts, record.key, record.codec) == (30_000_000, 7, "7", 1)
    assert (record.retry, record.headers, record.due_at) == (None, None, None)

    async def work() -> Any:
        async with app.worker():
            return await job.aresult(timeout=30)

    assert asyncio.run(work()) == "7: h\u00e9llo x2"


@pytest.mark.row("F7")
def test_it_is_as_if_python_had_enqueued_it(
    app: Tidemill, connection: psycopg.Connection[Any], sql: Sql
) -> None:
    mine = app.enqueue("send_email", [{"id": "x"}, "s"], tags=["a", "b"], expires=60, delay=100)
    theirs = app.job(
        sql(
            """SELECT tidemill.enqueue('send_email', '[{"id": "x"}, "s"]', tags => '{a,b}',
                                       expires => '1 min', delay => '100 s')"""
        )
    )
    connection.commit()
    one, other = record_of(mine), record_of(theirs)
    times = ("id", "seq", "created_at", "due_at", "expires_at", "body", "headers")
    for field in one.__struct_fields__:
        if field not in times:
            assert getattr(one, field) == getattr(other, field), field
    assert one.body is not None
    assert other.body is not None
    assert other.body.replace(b" ", b"") == one.body
    assert other.headers is not None
    assert one.headers == other.headers.replace(b" ", b"")
    assert other.due_at is not None
    assert other.due_at - other.created_at == 100_000_000
    assert other.expires_at == other.created_at + 60_000_000


@pytest.mark.row("F7")
def test_rolled_back(app: Tidemill, connection: psycopg.Connection[Any], sql: Sql) -> None:
    sql("SELECT tidemill.enqueue('plain', '[1]')")
    connection.rollback()
    assert asyncio.run(taken(app)) == []


def test_precedence_call_task_queue(app: Tidemill, connection: psycopg.Connection[Any], sql: Sql) -> None:
    said = app.job(sql("SELECT tidemill.enqueue('send_email', '[{}, \"s\"]', queue => 'slow', priority => 0, "
                       "timeout => '2 s', key => 'mine')"))  # fmt: skip
    of_task = app.job(sql("SELECT tidemill.enqueue('send_email', '[{}, \"s\"]', queue => 'slow')"))
    of_queue = app.job(sql("SELECT tidemill.enqueue('plain', queue => 'slow')"))
    of_app = app.job(sql("SELECT tidemill.enqueue('plain')"))
    connection.commit()
    seen = [
        (r.queue, r.priority, r.timeout, r.max_attempts, r.key)
        for r in (record_of(job) for job in (said, of_task, of_queue, of_app))
    ]
    assert seen == [
        ("slow", 0, 2_000_000, 7, "mine"),
        ("slow", 2, 30_000_000, 7, None),
        ("slow", 5, 5_500_000, 3, None),
        ("default", 5, None, 5, None),
    ]


def test_ids_and_due_times(app: Tidemill, connection: psycopg.Connection[Any], sql: Sql) -> None:
    own = uuid4()
    for _ in range(2):  # the second changes nothing
        assert sql("SELECT tidemill.enqueue('plain', '[1]', id => %s)", own) == own
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    later = app.job(sql("SELECT tidemill.enqueue('plain', at => %s)", tomorrow))
    past = app.job(sql("SELECT tidemill.enqueue('plain', at => now() - interval '1 day')"))
    unknown = app.job(sql("SELECT tidemill.enqueue('nobody.knows', queue => 'email')"))
    connection.commit()
    assert record_of(app.job(own)).body == b"[[1],{}]"
    record = record_of(later)
    assert record.state is JobState.SCHEDULED
    assert record.due_at == round(tomorrow.timestamp() * 1_000_000)
    assert record_of(past).state is JobState.READY
    assert record_of(unknown).task == "nobody.knows"


def test_the_same_id_for_another_call_is_refused(
    app: Tidemill, connection: psycopg.Connection[Any], sql: Sql
) -> None:
    """By the rule of Python: another task, or other arguments. In this transaction and in others."""
    mine, theirs = uuid4(), uuid4()
    app.enqueue("send_email", [{"id": 1, "x": "\u00e9"}], {"subject": "s"}, id=mine)
    first = 'SELECT tidemill.enqueue(\'send_email\', \'[{"id": 1, "x": "\u00e9"}, "s"]\', id => %s)'
    assert sql(first, theirs) == theirs
    for own in (mine, theirs):
        for call, says in [
            (
                "'send_email', '[{\"id\": 2}, \"s\"]'",
                f"{own} is there already, with other arguments for send_e",
            ),
            ('\'send_email\', \'[{"id": 1}]\', \'{"subject": "s", "tries": 1}\'', "with other arguments"),
            ("'plain'", "of the task send_email, not plain: it was left as it is, and this call was not"),
            ("'nobody', queue => 'email'", "of the task send_email, not nobody"),
        ]:
            with pytest.raises(errors.UniqueViolation, match=says), connection.transaction():
                connection.execute(f"SELECT tidemill.enqueue({call}, id => %s)", [own])
        assert sql(first, own) == own
        by_name = '\'{"subject": "s", "user": {"x": "\u00e9", "id": 1.0}}\', \'slow\', 9, delay => \'1 h\''
        assert sql(f"SELECT tidemill.enqueue('send_email', '[]', {by_name}, id => %s)", own) == own
    connection.commit()
    assert len(asyncio.run(taken(app, "email"))) == 2


def test_another_call_waits_for_the_transaction_that_has_the_id(
    app: Tidemill, url: str, connection: psycopg.Connection[Any], sql: Sql
) -> None:
    call, own = "SELECT tidemill.enqueue('plain', %s, id => %s)", uuid4()
    with psycopg.connect(url) as other, ThreadPoolExecutor() as threads:
        sql(call, "[1]", own)
        answer = threads.submit(other.execute, call, ["[2]", own])
        with psycopg.connect(url, autocommit=True) as onlooker:
            blocked = "SELECT cardinality(pg_blocking_pids(%s))"
            while onlooker.execute(blocked, [other.info.backend_pid]).fetchone() == (0,):
                assert not answer.done()
        connection.commit()
        with pytest.raises(errors.UniqueViolation, match="with other arguments"):
            answer.result()


def test_which_arguments_are_the_same(app: Tidemill, connection: psycopg.Connection[Any], sql: Sql) -> None:
    @app.task(name="sets")
    def sets(a: set[str], b: set[int] | None = None, c: list[int] | None = None) -> None: ...

    @app.task(name="small", queue="small")
    def small(text: str) -> None: ...

    async def put() -> None:
        engine = await open_engine(app.url)
        await configure(engine, "small", QueueOptions(keep_body=False))
        await publish(engine, app.registry, source="app", began=1)
        await engine.close()

    asyncio.run(put())

    def again(own: Any, *call: str) -> bool:
        """Whether it is the same call."""
        texts = ", ".join(f"'{each}'" for each in call)
        try:
            with connection.transaction():
                assert sql(f"SELECT tidemill.enqueue({texts}, id => %s)", own) == own
        except errors.UniqueViolation:
            return False
        return True

    def job(bound: Any, *args: Any) -> Any:
        return bound.using(id=uuid4()).enqueue(*args).uuid

    own = job(sets, {"x", "y", "z"}, {1, 2}, [1, 2])
    assert again(own, "sets", '[["z", "x", "y", "x"], [2, 1]]', '{"c": [1, 2]}')
    assert not again(own, "sets", '[["x", "y"], [1, 2], [1, 2]]')
    assert not again(own, "sets", '[["x", "y", "z"], [1, 2], [2, 1]]')  # the order of a list counts
    plain = job(app.task(name="more")(lambda *args, **more: None), 1, 2)
    assert again(plain, "more", "[1, 2]", "{}", "default")
    assert not again(plain, "more", "[2, 1]", "{}", "default")
    zero = job(small, "a zero: \0")  # which no jsonb can hold
    assert not again(zero, "small", '["a zero: "]')
    connection.commit()

    async def finish(hand: Any) -> None:
        for run in await hand.take("small"):
            await hand.settle(run)

    asyncio.run(with_hand(app, finish))
    assert again(zero, "small", '["nobody knows its arguments any more"]')
    assert not again(zero, "sets", "[[]]")


def test_several_keep_their_order_and_one_statement_may_make_many(
    app: Tidemill, connection: psycopg.Connection[Any]
) -> None:
    rows = connection.execute(
        "SELECT tidemill.enqueue('plain', jsonb_build_array(n)) FROM generate_series(1, 50) AS n"
    ).fetchall()
    connection.commit()
    assert [job.id for job in asyncio.run(taken(app))] == [row[0].bytes for row in rows]


def test_a_worker_is_woken_once(app: Tidemill, url: str, connection: psycopg.Connection[Any]) -> None:
    with psycopg.connect(url, autocommit=True) as listener:
        listener.execute('LISTEN "tidemill:tidemill"')
        connection.execute(
            "SELECT tidemill.enqueue('plain', jsonb_build_array(n)) FROM generate_series(1, 9) AS n"
        )
        assert list(listener.notifies(timeout=0.2)) == []
        connection.commit()
        assert [note.payload for note in listener.notifies(timeout=1)] == ['["ready:default"]']


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        ("'send_emial'", errors.UndefinedObject, "did you mean 'send_email'"),
        ("'zzz'", errors.UndefinedObject, r"no task 'zzz' is known to any worker \(to enqueue"),
        ("'two words', queue => 'q'", errors.InvalidParameterValue, "is not a task"),
        ("NULL", errors.InvalidParameterValue, "is not a task"),
        ("'plain', '{}'", errors.InvalidParameterValue, "args is a JSON array"),
        ("'plain', NULL", errors.InvalidParameterValue, "args is a JSON array"),
        ("'plain', '[]', '[]'", errors.InvalidParameterValue, "kwargs is a JSON object"),
        ("'plain', priority => 11", errors.InvalidParameterValue, "between 0 .first. and 10"),
        ("'plain', priority => -1", errors.InvalidParameterValue, "not -1"),
        ("'plain', queue => 'no queue'", errors.InvalidParameterValue, "is not a queue"),
        ("'plain', delay => '-1 s'", errors.InvalidParameterValue, "delay must lie"),
        ("'plain', delay => '200 years'", errors.InvalidParameterValue, "100 years"),
        ("'plain', timeout => '0 s'", errors.InvalidParameterValue, "timeout must lie"),
        ("'plain', expires => '0 s'", errors.InvalidParameterValue, "expires must lie"),
        ("'plain', at => now(), delay => '1 s'", errors.InvalidParameterValue, "not both"),
        ("'plain', at => 'infinity'", errors.InvalidParameterValue, "between 1970 and 2255"),
        ("'plain', key => repeat('x', 201)", errors.InvalidParameterValue, "at most 200 characters"),
        ("'plain', key => E'a\\x01b'", errors.InvalidParameterValue, "no control characters"),
        ("'send_email', '[{}]'", errors.InvalidParameterValue, "send_email: missing subject"),
        ("'send_email', '[{}, \"s\", 3]'", errors.InvalidParameterValue, r"takes \(user, subject, tries\)"),
        ("'send_email', '[{}, \"s\"]', '{\"x\": 1}'", errors.InvalidParameterValue, "and x by name"),
        ("'send_email', '[{}, \"s\"]', '{\"user\": {}}'", errors.InvalidParameterValue, "and user by name"),
        ("'plain', jsonb_build_array(repeat('x', 1048576))", errors.ProgramLimitExceeded, "1048576"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(
    app: Tidemill, connection: psycopg.Connection[Any], call: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        connection.execute(f"SELECT tidemill.enqueue({call})")
    connection.rollback()
    assert asyncio.run(taken(app, "default", "email")) == []


def test_a_role_with_nothing_but_the_right_to_use_the_schema(
    app: Tidemill, url: str, connection: psycopg.Connection[Any]
) -> None:
    role = f"web_{uuid4().hex[:8]}"
    connection.execute(f"CREATE ROLE {role} LOGIN")
    connection.execute(f"GRANT USAGE ON SCHEMA tidemill TO {role}")
    connection.commit()
    try:
        with psycopg.connect(url, user=role) as web:
            web.execute("CREATE TEMPORARY TABLE task (name text, entry bytea)")  # must not pass for ours
            row = web.execute("SELECT tidemill.enqueue('plain', '[1, 2]')").fetchone()
            assert row is not None
            with pytest.raises(errors.InsufficientPrivilege), web.transaction():
                web.execute("SELECT * FROM tidemill.job")
        assert record_of(app.job(row[0])).queue == "default"
    finally:
        connection.execute(f"DROP OWNED BY {role}")
        connection.execute(f"DROP ROLE {role}")
        connection.commit()


def test_arguments_that_do_not_fit_their_types_are_found_by_the_worker(
    app: Tidemill, connection: psycopg.Connection[Any], sql: Sql
) -> None:
    job = app.job(sql("SELECT tidemill.enqueue('plain', '[\"x\"]')"))
    connection.commit()

    async def work() -> Any:
        async with app.worker():
            return await job.aresult(timeout=30)

    with pytest.raises(JobFailed, match="plain"):
        asyncio.run(work())


def test_other_namespaces_have_their_own(url: str, connection: psycopg.Connection[Any]) -> None:
    other = Tidemill(url, namespace="other")
    with pytest.raises(UnknownJob):
        record_of(other.job("ab" * 16))
    row = connection.execute("SELECT other.enqueue('t', queue => 'q')").fetchone()
    connection.commit()
    assert row is not None
    assert record_of(other.job(row[0])).queue == "q"
    other.close()
    connection.execute("DROP SCHEMA other CASCADE")
    connection.commit()
