"""Tasks as they are declared, and what is refused at the decorator."""

import sys
from types import ModuleType
from typing import Any

import msgspec
import pytest

from tidemill import Retry, Tidemill
from tidemill.app.enqueueing.by_name import Parameters
from tidemill.model.errors import BadInput
from tidemill.model.names import nearest
from tidemill.model.schedules.schedule import Every
from tidemill.task.definition import Definition
from tidemill.task.registry import Registry


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


CELL = """
@app.every({seconds})
@app.task
def f():
    return {number}
"""


def run_cell(program: ModuleType, **values: int) -> None:
    exec(CELL.format(**values), vars(program))


def test_a_cell_that_is_run_again_replaces_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    app = Tidemill("sqlite://")
    told: list[str] = []
    app.registry.on_replaced.append(lambda: told.append("replaced"))
    vars(notebook)["app"] = app
    run_cell(notebook, seconds=3, number=1)
    run_cell(notebook, seconds=5, number=2)
    (definition,) = app.registry.definitions()
    assert (definition.name, definition.function()) == ("__main__.f", 2)
    assert told == ["replaced"]
    (make,) = app.registry.schedules.values()
    assert make().timing == Every(seconds=5)


def test_in_a_program_with_a_file_it_is_two_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    program = ModuleType("__main__")
    program.__file__ = "/shop/jobs.py"
    monkeypatch.setitem(sys.modules, "__main__", program)
    vars(program)["app"] = Tidemill("sqlite://")
    run_cell(program, seconds=3, number=1)
    vars(program)["app"].registry.find("jobs.f").function.__code__ = (lambda: 3).__code__  # elsewhere
    with pytest.raises(BadInput, match=r"two tasks named 'jobs\.f'"):
        run_cell(program, seconds=3, number=2)


def test_at_a_prompt_two_functions_of_one_task_name_are_still_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notebook = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    app = Tidemill("sqlite://")
    exec("def f(): ...\ndef g(): ...", vars(notebook))
    app.task(name="t")(vars(notebook)["f"])
    with pytest.raises(BadInput, match="two tasks named 't'"):
        app.task(name="t")(vars(notebook)["g"])


def test_queues_are_declared_once_and_may_be_required() -> None:
    registry = Registry(strict_queues=True)
    registry.declare("email", {"concurrency": 5})
    registry.declare("email", {"concurrency": 5})
    with pytest.raises(BadInput, match="declared before"):
        registry.declare("email", {"concurrency": 6})
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
