"""Wrong names, wrong types and near misses: what every constructor, decorator and call answers.

One table. The answer is a `BadInput` that says what is wrong and what would be right; no internal error, and
nothing that is taken and means something else.
"""

import copy
import pickle
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

import tidemill as typed
from tidemill import BadInput, DeadJob

# A type checker would refuse most of this page; here it is to be said when it runs.
Tidemill: Any = typed.Tidemill
Retry: Any = typed.Retry
Rate: Any = typed.Rate
Limit: Any = typed.Limit
Keep: Any = typed.Keep
app: Any = Tidemill("sqlite://")


@pytest.fixture(autouse=True, scope="module")
def _closed() -> Iterator[None]:
    """Some calls open the engine: tests that count threads must not find its writer."""
    yield
    app.close()


def f_(x: int = 0) -> int:
    return x


def handler_(dead: DeadJob) -> None: ...


f: Any = app.task(name="f")(f_)
handler: Any = app.task(name="handler")(handler_)


class Thing:
    """Of no use to anybody."""


THING: Any = Thing()
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001

TABLE: dict[str, tuple[Callable[..., object], str]] = {
    # Tidemill
    "Tidemill(url=5)": (lambda: Tidemill(url=5), "url"),
    "Tidemill(namspace=)": (lambda: Tidemill(namspace="x"), "'namspace'; did you mean 'namespace'?"),
    "Tidemill(namespace=5)": (lambda: Tidemill(namespace=5), "namespace"),
    "Tidemill(retry=3)": (lambda: Tidemill(retry=3), r"retry= takes a Retry\(attempts=3\)"),
    "Tidemill(timeout='5')": (lambda: Tidemill(timeout=THING), "timeout"),
    "Tidemill(strict_queues=)": (lambda: Tidemill(strict_queues="no"), "strict_queues= is True or False"),
    "Tidemill(settings={})": (lambda: Tidemill(settings={"url": "x"}), "settings= takes Settings"),
    # Retry
    "Retry(attempts='3')": (lambda: Retry(attempts="3"), "attempts is a whole number, not str"),
    "Retry(attempts=2.5)": (lambda: Retry(attempts=2.5), "attempts is a whole number, not float"),
    "Retry(attempts=True)": (lambda: Retry(attempts=True), "attempts is a whole number, not bool"),
    "Retry(attempts=0)": (lambda: Retry(attempts=0), "attempts must lie between"),
    "Retry(base='1s')": (lambda: Retry(base="1s"), "a length of time is a number of seconds"),
    "Retry(cap=None)": (lambda: Retry(cap=None), "a length of time is a number of seconds"),
    "Retry(backoff='linear')": (lambda: Retry(backoff="linear"), "backoff is"),
    "Retry(jitter=True)": (lambda: Retry(jitter=True), "jitter is"),
    "Retry(on=5)": (lambda: Retry(on=5), r"on= takes exception classes or their names, not 5"),
    "Retry(on=int)": (lambda: Retry(on=int), r"on= takes exception classes or their names, not int"),
    "Retry(on=OSError())": (lambda: Retry(on=OSError()), r"on= takes .* not OSError\(\)"),
    "Retry(on=(OSError, 5))": (lambda: Retry(on=(OSError, 5)), "on= takes .* not 5"),
    "Retry(on='')": (lambda: Retry(on=""), "on= takes .* not ''"),
    "Retry(on='OS Error')": (lambda: Retry(on="OS Error"), "on= takes .* not 'OS Error'"),
    "Retry(give_up=5)": (lambda: Retry(give_up=5), "give_up= takes .* not 5"),
    "Retry(attempt=3)": (
        lambda: Retry(attempt=3),
        r"Retry has no option 'attempt'; did you mean 'attempts'\? options are attempts, backoff, base, cap",
    ),
    "Retry(3)": (lambda: Retry(3), "Retry: too many positional arguments; it takes attempts, backoff"),
    # Rate, Limit, Keep
    "Rate('5')": (lambda: Rate("5"), r"count is a whole number, not str"),
    "Rate('100/m')": (lambda: Rate("100/m"), r'Rate\.parse\("100/m"\)'),
    "Rate(5, per='m')": (lambda: Rate(5, per="m"), "per is a number of seconds, not str"),
    "Limit(concurrency='5')": (lambda: Limit(concurrency="5"), "concurrency is a whole number, not str"),
    "Limit(concurrency=0)": (lambda: Limit(concurrency=0), "to stop a queue, pause it"),
    "Limit(rate=5)": (lambda: Limit(rate=5), 'is not a rate: write "100/m"'),
    "Limit(rate='5 per m')": (lambda: Limit(rate="5 per m"), 'is not a rate: write "100/m"'),
    "Rate()": (lambda: Rate(), "Rate: missing a required argument: 'count'; it takes count, per"),
    "Rate(window=)": (lambda: Rate(5, window=3), "Rate has no option 'window'; options are count, per"),
    "Rate(5, 1, True, 2)": (lambda: Rate(5, 1, True, 2), "Rate: too many positional arguments"),
    "Limit(concurency=)": (lambda: Limit(concurency=3), "'concurency'; did you mean 'concurrency'?"),
    "Limit(5)": (lambda: Limit(5), "Limit: too many positional arguments; it takes concurrency, rate"),
    "Keep(counts=)": (lambda: Keep(counts=3), "Keep has no option 'counts'; did you mean 'count'?"),
    "Keep(5)": (lambda: Keep(5), "Keep: too many positional arguments; it takes age, count"),
    "Keep(count='5')": (lambda: Keep(count="5"), "count is a whole number, not str"),
    "Keep(age='1d')": (lambda: Keep(age="1d"), "a length of time is a number of seconds"),
    # app.queue
    "queue()": (lambda: app.queue(), r"app\.queue: missing a required argument: 'name'"),
    "queue(5)": (lambda: app.queue(5), "5 is not a queue name"),
    "queue(['a'])": (lambda: app.queue(["a"]), "is not a queue name"),
    "queue(concurency=)": (
        lambda: app.queue("q", concurency=5),
        r"app\.queue has no option 'concurency'; did you mean 'concurrency'\? options are name, concurrency",
    ),
    "queue(concurrency='5')": (lambda: app.queue("q", concurrency="5"), "concurrency is a whole number"),
    "queue(rate=50)": (lambda: app.queue("q", rate=50), "50 is not a rate: write"),
    "queue(concurrency=0)": (lambda: app.queue("q", concurrency=0), "to stop a queue, pause it"),
    "queue(concurrency=-1)": (lambda: app.queue("q", concurrency=-1), "concurrency lies between 1"),
    "queue(concurrency=True)": (lambda: app.queue("q", concurrency=True), "concurrency is a whole number"),
    "queue(rate='100/fortnight')": (lambda: app.queue("q", rate="100/fortnight"), "is not a rate: write"),
    "queue(rate='0/s')": (lambda: app.queue("q", rate="0/s"), "a rate allows between 1 and"),
    "queue(rate='-5/s')": (lambda: app.queue("q", rate="-5/s"), "is not a rate: write"),
    "queue(rate=Limit)": (lambda: app.queue("q", rate=Limit(rate="5/s")), "is not a rate: write"),
    "queue(per_key=0)": (lambda: app.queue("q", per_key=0), "to stop a queue, pause it"),
    "queue(per_key='5')": (lambda: app.queue("q", per_key="5"), "per_key=: '5' is not a rate.*number"),
    "queue(per_key=True)": (lambda: app.queue("q", per_key=True), "per_key= takes a number of jobs at once"),
    "queue(per_key=2.5)": (lambda: app.queue("q", per_key=2.5), "per_key= takes a number of jobs at once"),
    "queue(per_worker='x')": (lambda: app.queue("q", per_worker="x"), "per_worker=: 'x' is not a rate"),
    "queues.set(concurency=)": (
        lambda: app.queues.set("q", concurency=5),
        r"queues\.set has no option 'concurency'; did you mean 'concurrency'\? options are concurrency, rate",
    ),
    "queues.set()": (lambda: app.queues.set("q"), r"queues\.set: say what to set, such as concurrency=5"),
    "queues.set(timeout=)": (lambda: app.queues.set("q", timeout=5), "timeout is written into each job"),
    "queues.set(rate='100/fortnight')": (
        lambda: app.queues.set("q", rate="100/fortnight"),
        "is not a rate: write",
    ),
    "queues.set(per_key='5')": (lambda: app.queues.set("q", per_key="5"), "per_key=: '5' is not a rate"),
    "queues.reset(5)": (lambda: app.queues.reset("q", 5), "takes the names of options, not int"),
    "queue(limits=5)": (lambda: app.queue("q", limits=5), "limits= takes a dict of keys and limits"),
    "queue(limits={'a': 'x'})": (lambda: app.queue("q", limits={"a": "x"}), "limits=: 'x' is not a rate"),
    "queue(limits={'a': 0})": (lambda: app.queue("q", limits={"a": 0}), "to stop a queue, pause it"),
    "queue(limits={5: 1})": (lambda: app.queue("q", limits={5: 1}), "a key is a string, not int"),
    "queue(weights, no keys)": (lambda: app.queue("q", weights={"a": 2}), "weights need lanes by key"),
    "queue(weights={'a': 0})": (
        lambda: app.queue("q", fair_by="key", weights={"a": 0}),
        "weight of 'a' lies between 1",
    ),
    "queue(per_task=5)": (lambda: app.queue("q", per_task=5), "per_task= takes a dict of tasks and limits"),
    "queue(per_task={5: })": (lambda: app.queue("q", per_task={5: Limit()}), "5 is not a task name"),
    "queue(per_task={'t': 'x'})": (lambda: app.queue("q", per_task={"t": "x"}), "per_task=: 'x' is not"),
    "queue(fair_by='tenant')": (lambda: app.queue("q", fair_by="tenant"), 'fair_by is "key"'),
    "queue(weights=5)": (lambda: app.queue("q", fair_by="key", weights=5), "weights= takes a dict"),
    "queue(weights={'a': 'x'})": (lambda: app.queue("q", fair_by="key", weights={"a": "x"}), "weight of 'a'"),
    "queue(timeout='5')": (lambda: app.queue("q", timeout="5"), "a length of time is"),
    "queue(retry=3)": (lambda: app.queue("q", retry=3), r"retry= takes a Retry\(attempts=3\)"),
    "queue(keep='5')": (lambda: app.queue("q", keep="5"), "keep= takes a number of jobs"),
    "queue(keep_dead=1.5)": (lambda: app.queue("q", keep_dead=1.5), "keep_dead= takes a number of jobs"),
    "queue(keep_body='no')": (lambda: app.queue("q", keep_body="no"), "keep_body= is True or False"),
    # app.task
    "task(retries=3)": (
        lambda: app.task(retries=3),
        r"app\.task has no option 'retries'; did you mean 'retry'\? options are name, queue, priority",
    ),
    "task('emails')": (lambda: app.task("emails"), r"a task is a function, not str"),
    "task(name=5)": (lambda: app.task(name=5)(f), "5 is not a task name"),
    "task(queue=5)": (lambda: app.task(queue=5)(f), "5 is not a queue name"),
    "task(priority='high')": (lambda: app.task(priority="high")(f), "priority"),
    "task(timeout='5')": (lambda: app.task(timeout="5")(f), "a length of time is"),
    "task(retry=3)": (lambda: app.task(retry=3)(f), r"retry= takes a Retry\(attempts=3\)"),
    "task(key=5)": (lambda: app.task(key=5)(f), "key= takes the name of a parameter, not int"),
    "task(key=lambda)": (lambda: app.task(key=lambda x: x)(f), "key= takes the name of a parameter"),
    "task(runs_in='procces')": (lambda: app.task(runs_in="procces")(f), 'runs_in is "loop"'),
    "task(delay=5)": (lambda: app.task(delay=5)(f), r"no option 'delay'.*it is one of using\(\)"),
    # using
    "using(dely=5)": (lambda: f.using(dely=5), r"using has no option 'dely'; did you mean 'delay'\?"),
    "using(delay='5')": (lambda: f.using(delay="5"), "delay=: a length of time is"),
    "using(at=5)": (lambda: f.using(at=5), "at= takes a datetime"),
    "using(at=naive)": (lambda: f.using(at=NAIVE), "has no time zone"),
    "using(at, delay)": (lambda: f.using(at=datetime.now().astimezone(), delay=5), "not both"),
    "using(priority='high')": (lambda: f.using(priority="high"), "priority"),
    "using(queue=5)": (lambda: f.using(queue=5), "5 is not a queue name"),
    "using(timeout='5')": (lambda: f.using(timeout="5"), "timeout=: a length of time is"),
    "using(retry=3)": (lambda: f.using(retry=3), r"retry= takes a Retry\(attempts=3\)"),
    "using(id=5)": (lambda: f.using(id=5), "id"),
    "using(id='x')": (lambda: f.using(id="x"), "id"),
    "using(key=5)": (lambda: f.using(key=5), "a key is a string, not int"),
    "using(expires='5')": (lambda: f.using(expires="5"), "expires=: a length of time is"),
    "using(expires=0)": (lambda: f.using(expires=0), "expires must be longer than 0 s"),
    "using(after=5)": (lambda: f.using(after=5), "after= takes a job or a list of jobs, not int"),
    "using(after=[5])": (lambda: f.using(after=[5]), "after= takes a job or a list of jobs"),
    "using(after=call)": (lambda: f.using(after=f.call(1)), "after= takes .* enqueue it first"),
    "using(parent_died='x')": (lambda: f.using(parent_died="x"), 'parent_died is "cancel"'),
    "using(on_dead=5)": (lambda: f.using(on_dead=5), "on_dead"),
    "using(on_dead=f)": (lambda: f.using(on_dead=f), "cannot handle a death"),
    "using(tags='x')": (lambda: f.using(tags="x"), "tags= takes a list of strings"),
    "using(tags=5)": (lambda: f.using(tags=5), "tags= takes a list of strings"),
    "using(tags=[5])": (lambda: f.using(tags=[5]), "tags= takes a list of strings"),
    # calls
    "enqueue(delay=5)": (lambda: f.enqueue(1, delay=5), r"'delay'.*f\.using\(delay=\.\.\.\)\.enqueue\("),
    "call(y=5)": (lambda: f.call(y=5), "unexpected keyword argument 'y'"),
    "call('x')": (lambda: f.call("x"), "Expected `int`, got `str`"),
    "app.enqueue(5)": (lambda: app.enqueue(5), "5 is not a task name"),
    "app.enqueue(['f'])": (lambda: app.enqueue(["f"]), r"\['f'\] is not a task name"),
    "app.enqueue(task)": (lambda: app.enqueue(f), r"takes a task's name: write f\.enqueue\("),
    "app.enqueue('f', 5)": (lambda: app.enqueue("f", 5), "a list and a dict"),
    "app.enqueue('f', [], 5)": (lambda: app.enqueue("f", [], 5), "keyword arguments are a dict"),
    "app.enqueue(dely=)": (lambda: app.enqueue("f", dely=5), r"app\.enqueue has no option 'dely'; did"),
    "enqueue_many(5)": (lambda: app.enqueue_many(5), "enqueue_many takes calls"),
    "enqueue_many(call)": (lambda: app.enqueue_many(f.call()), "enqueue_many takes calls"),
    "enqueue_many([f])": (lambda: app.enqueue_many([f]), "enqueue_many takes calls"),
    "enqueue_many(transation=)": (lambda: app.enqueue_many([], transation=5), "did you mean 'transaction'?"),
    # schedules
    "cron(5)": (lambda: app.cron(5), "cron takes its fields in one string"),
    "cron('x')": (lambda: app.cron("x"), "x"),
    "cron()": (lambda: app.cron(), r"app\.cron: missing a required argument: 'fields'"),
    "@cron": (lambda: app.cron(f), "cron takes its fields in one string"),
    "cron(timezone=)": (lambda: app.cron("* * * * *", timezone="UTC"), r"app\.cron has no option 'timezone'"),
    "cron(tz=5)": (lambda: app.cron("* * * * *", tz=5), "time zone"),
    "cron(tz='Mars')": (lambda: app.cron("* * * * *", tz="Mars"), "Mars"),
    "cron(missed='x')": (lambda: app.cron("* * * * *", missed="x")(f), "missed"),
    "cron(overlap='x')": (lambda: app.cron("* * * * *", overlap="x")(f), "overlap"),
    "cron(waiting='x')": (lambda: app.cron("* * * * *", waiting="x")(f), "waiting"),
    "cron(keep='x')": (lambda: app.cron("* * * * *", keep="x")(f), "keep"),
    "every(keep=-1)": (lambda: app.every(3, keep=-1)(f), "keep is a number of jobs from 0 to 1,000"),
    "cron(jitter='x')": (lambda: app.cron("* * * * *", jitter="x"), "a length of time is"),
    "cron(start=5)": (lambda: app.cron("* * * * *", start=5), "start and end take a datetime"),
    "cron(name=5)": (lambda: app.cron("* * * * *", name=5)(f), "5 is not a"),
    "cron(...)(function)": (lambda: app.cron("* * * * *")(lambda: None), "stand above @app.task"),
    "every('3s')": (lambda: app.every("3s"), "a length of time is"),
    "every(0)": (lambda: app.every(0)(f), "0"),
    "every(seconds=, missed=)": (lambda: app.every(3, missed="all"), r"app\.every has no option 'missed'"),
    "@every": (lambda: app.every(f), "a length of time is"),
    "on_startup(scope='x')": (lambda: app.on_startup(scope="x"), 'scope is "cluster" or "worker"'),
    "@on_startup": (lambda: app.on_startup(f), r"app\.on_startup: too many positional arguments"),
    "@on_dead": (lambda: app.on_dead(handler), "it is a handler itself"),
    "on_dead('f')": (lambda: app.on_dead("f"), "on_dead is about tasks, not str"),
    "on_dead(queue=)": (lambda: app.on_dead(queue="q"), r"app\.on_dead has no option 'queue'"),
    "put(call=f)": (lambda: app.schedules.put("n", f, every=3), r"a schedule runs a call, task\.call"),
    "put(5)": (lambda: app.schedules.put(5, f.call(), every=3), "5 is not a"),
    "put()": (lambda: app.schedules.put("n", f.call()), "give cron= or every="),
    "put(evry=)": (lambda: app.schedules.put("n", f.call(), evry=3), "did you mean 'every'?"),
    "run(5)": (lambda: app.schedules.run(5), "a schedule's name is a text, not int"),
    "put(every='3s')": (lambda: app.schedules.put("n", f.call(), every="3s"), "a length of time is"),
    # the rest
    "worker(slots='3')": (lambda: app.worker(slots="3"), "slots= is a whole number from 1 to"),
    "worker(slots=0)": (lambda: app.worker(slots=0), "slots= is a whole number from 1 to"),
    "worker(queues='q')": (lambda: app.worker(queues="q"), "queues= takes a list of names"),
    "worker(queues=5)": (lambda: app.worker(queues=5), "queues= takes a list of names"),
    "worker(queues=[5])": (lambda: app.worker(queues=[5]), "5 is not a queue name"),
    "worker(shutdown_timeout=)": (lambda: app.worker(shutdown_timeout="5"), "a length of time is"),
    "worker(controller='no')": (lambda: app.worker(controller="no"), "controller= is True or False"),
    "worker(slot=)": (lambda: app.worker(slot=3), r"app\.worker has no option 'slot'; did you"),
    "events(queue=5)": (lambda: app.events(queue=5), "5 is not a queue name"),
    "events(queue=['q'])": (lambda: app.events(queue=["q"]), r"\['q'\] is not a queue name"),
    "events(task=5)": (lambda: app.events(task=5), "5 is not a task name"),
    "events(states='x')": (lambda: app.events(states="x"), "the states are"),
    "events(states=5)": (lambda: app.events(states=5), "the states are"),
    "events(job=5)": (lambda: app.events(job=5), "id"),
    "events(state=)": (lambda: app.events(state="dead"), "did you mean 'states'?"),
    "job(5)": (lambda: app.job(5), "id"),
    "job('x')": (lambda: app.job("x"), "id"),
    "result('5')": (lambda: app.job("0" * 32).result("5"), "timeout=: a length of time is"),
    "result(-1)": (lambda: app.job("0" * 32).result(-1), "timeout=: a length of time must lie between 0"),
}  # fmt: skip


@pytest.mark.parametrize(("ask", "says"), TABLE.values(), ids=TABLE)
def test_what_is_wrong_is_answered_at_the_line(ask: Callable[..., object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        ask()


def test_records_are_decoded_and_copied_as_before() -> None:
    retry = Retry(attempts=3, on=OSError)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(retry), type=Retry) == retry
    assert pickle.loads(pickle.dumps(retry)) == copy.copy(retry) == retry
    assert msgspec.structs.replace(retry, attempts=4).attempts == 4


def test_one_exception_is_as_good_as_a_tuple_of_one() -> None:
    assert Retry(on=OSError).on == Retry(on="OSError").on == Retry(on=(OSError,)).on == ("OSError",)
    assert Retry(give_up=ValueError).give_up == ("ValueError",)
    assert Retry(on=[OSError, "shop.Declined"]).on == ("OSError", "shop.Declined")
    assert Retry(on={OSError}).retries(1, ["OSError"])


def test_a_bare_number_is_a_concurrency_and_text_is_a_rate() -> None:
    app.queue("limits", per_key=5, per_worker=2, per_task={f: 3}, rate="5/s")
    limits = app.registry.queues["limits"]
    assert limits.per_key == Limit(concurrency=5)
    assert limits.per_worker == Limit(concurrency=2)
    assert limits.per_task == {"f": Limit(concurrency=3)}
    assert Limit(rate="50/10s").rate == Rate(50, per=10)


def test_lengths_of_time_are_seconds_or_timedeltas() -> None:
    assert Retry(base=timedelta(seconds=2), cap=timedelta(minutes=1)) == Retry(base=2.0, cap=60.0)
    assert Keep(age=timedelta(days=1)) == Keep(age=86_400.0)
    assert Rate(5, per=timedelta(minutes=1)) == Rate(5, per=60.0)
