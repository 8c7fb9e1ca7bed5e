"""Tasks as they are declared, and what is refused at the decorator."""

from typing import Any

import msgspec
import pytest

from tidemill import Retry, Tidemill
from tidemill.app.by_name import Parameters
from tidemill.model.errors import BadInput
from tidemill.model.queue import QueueOptions
from tidemill.task.definition import Definition
from tidemill.task.registry import Registry, nearest


class Customer(msgspec.Struct):
    tenant: str


def plain(a: int, b: str = "x", *, customer: Customer | None = None) -> None: ...
async def on_the_loop() -> None: ...


def test_where_a_task_runs_follows_from_what_it_is() -> None:
    assert Definition(plain).runs_in == "thread"
    assert Definition(on_the_loop).runs_in == "loop"
    assert Definition(plain, runs_in="process").runs_in == "process"
    assert Definition(plain).name == f"{__name__}.plain"


@pytest.mark.parametrize(
    ("function", "options", "says"),
    [
        (on_the_loop, {"runs_in": "process"}, "is for def"),
        (lambda: None, {"runs_in": "process", "name": "t"}, "another process"),
        ("".join, {"runs_in": "process", "name": "t"}, "another process"),
        (on_the_loop, {"runs_in": "thread"}, "leave runs_in out"),
        (plain, {"runs_in": "loop"}, "leave runs_in out"),
        (plain, {"runs_in": "moon"}, "runs_in is"),
        (plain, {"key": "nope"}, "no parameter 'nope'"),
        (plain, {"priority": 11}, "priority"),
        (plain, {"queue": "no spaces"}, "queue"),
        (plain, {"name": "a b"}, "task name"),
        ("text", {"name": "t"}, "a task is a function"),
    ],
)
def test_what_cannot_be_a_task_is_refused_at_once(function: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        Definition(function, **options)


@pytest.mark.parametrize(("timeout", "retry"), [(0, None), (-1, None), ("5", None), (None, 3)])
def test_the_decorator_refuses_bad_options(timeout: Any, retry: Any) -> None:
    with pytest.raises(BadInput):
        Tidemill("sqlite://").task(timeout=timeout, retry=retry)(plain)


def test_the_key_is_a_parameter_or_a_field_of_one() -> None:
    assert Definition(plain, key="a").key_of((7,), {}) == "7"
    assert Definition(plain, key="b").key_of((7,), {}) == "x"  # its default
    assert Definition(plain, key="customer").key_of((7,), {}) is None
    by_field = Definition(plain, key="customer.tenant")
    assert by_field.key_of((7,), {"customer": Customer("gold")}) == "gold"
    assert by_field.key_of((7,), {"customer": {"tenant": "gold"}}) == "gold"


def test_two_tasks_of_one_name_are_refused() -> None:
    registry = Registry()
    registry.add(Definition(plain, name="t"))
    registry.add(Definition(plain, name="t"))  # the same code, imported twice
    with pytest.raises(BadInput, match="two tasks named 't'"):
        registry.add(Definition(on_the_loop, name="t"))


def test_queues_are_declared_once_and_may_be_required() -> None:
    registry = Registry(strict_queues=True)
    registry.declare("email", QueueOptions(concurrency=5))
    registry.declare("email", QueueOptions(concurrency=5))
    with pytest.raises(BadInput, match="declared before"):
        registry.declare("email", QueueOptions(concurrency=6))
    with pytest.raises(BadInput, match="was not declared"):
        registry.add(Definition(plain, queue="emial"))
    assert registry.queue_names() == ("default", "email")


def test_the_catalogue_entry_says_how_to_call_it() -> None:
    entry = Definition(plain, queue="q", priority=2, key="a", retry=Retry(attempts=2)).entry("default")
    assert (entry.queue, entry.priority, entry.key, entry.retry) == ("q", 2, "a", Retry(attempts=2))
    assert entry.schema is not None
    known = msgspec.json.decode(entry.schema, type=Parameters)
    assert (known.positional, known.required, known.more) == (["a", "b"], ["a"], False)
    assert list(known.properties) == ["a", "b", "customer"]


def test_the_nearest_name_is_offered() -> None:
    assert nearest("shop.send_emial", ["shop.send_email", "other"]) == "; did you mean 'shop.send_email'?"
    assert nearest("zzz", ["shop.send_email"]) == ""


def test_exception_classes_become_names() -> None:
    policy = Retry(on=(OSError,), give_up=(ValueError, "shop.Declined"))
    assert (policy.on, policy.give_up) == (("OSError",), ("ValueError", "shop.Declined"))
    assert msgspec.json.decode(msgspec.json.encode(policy), type=Retry) == policy
    with pytest.raises(BadInput):
        Retry(on=(3,))  # type: ignore[arg-type]
