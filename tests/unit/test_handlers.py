"""`@app.on_dead` and `using(on_dead=...)`: what is declared, and what is refused."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tidemill import BadInput, DeadJob, Retry, Tidemill
from tidemill.model.ids import handler_id, new_id, show_id
from tidemill.model.jobs.death import Death, handler_job
from tidemill.model.jobs.job import Failure
from tidemill.model.view import TaskEntry


def an_app() -> tuple[Tidemill, Any, Any]:
    app = Tidemill("sqlite://")

    @app.task(name="charge")
    def charge(card: str) -> None: ...

    @app.task(name="bury", queue="graves")
    async def bury(dead: DeadJob) -> None: ...

    return app, charge, bury


def test_the_handler_of_one_task_and_of_all_others() -> None:
    app, charge, bury = an_app()

    @app.task(name="refund")
    def refund(dead: DeadJob, note: str = "") -> None: ...

    @app.task(name="mail")
    def mail() -> None: ...

    assert charge.call("c").job.on_dead is None
    assert app.on_dead()(bury) is bury
    assert app.on_dead(charge)(refund) is refund
    assert charge.call("c").job.on_dead == "refund"
    assert mail.call().job.on_dead == "bury"
    assert bury.using(on_dead=refund).call(a_death()).job.on_dead == "refund"
    assert {refund.call(a_death()).job.on_dead, bury.call(a_death()).job.on_dead} == {None}
    assert charge.using(on_dead=bury).call("c").job.on_dead == "bury"
    assert charge.using(on_dead="elsewhere").call("c").job.on_dead == "elsewhere"


def test_what_the_catalogue_says() -> None:
    app, charge, bury = an_app()
    app.on_dead(charge)(bury)
    app.queue("graves", retry=Retry(attempts=9))
    registry = app.registry
    assert registry.entry_of(charge.definition).on_dead == "bury"
    entry = registry.entry_of(bury.definition)
    assert (entry.queue, entry.on_dead, entry.retry) == ("graves", None, Retry(attempts=9))


def test_a_module_that_is_imported_twice() -> None:
    app, charge, bury = an_app()
    app.on_dead(charge)(bury)
    app.on_dead(charge)(bury)
    assert charge.call("c").job.on_dead == "bury"


def test_an_annotation_that_cannot_be_resolved_yet() -> None:
    """Of a task whose deaths are handled: it may be defined further down."""
    app, _, bury = an_app()

    @app.task(name="later")
    def later(order: "Order") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    app.on_dead(later)(bury)
    assert app.registry.handler_of(later.definition) == "bury"


def test_two_handlers_are_refused() -> None:
    app, charge, bury = an_app()

    @app.task(name="other")
    def other(dead: DeadJob) -> None: ...

    app.on_dead(charge)(bury)
    app.on_dead()(bury)
    with pytest.raises(BadInput, match="charge has a handler already: bury"):
        app.on_dead(charge)(other)
    with pytest.raises(BadInput, match="this app has a handler already: bury"):
        app.on_dead()(other)


def test_what_cannot_be_a_handler() -> None:
    app, charge, bury = an_app()

    @app.task(name="plain")
    def plain(dead) -> None: ...  # type: ignore[no-untyped-def]

    @app.task(name="two")
    def two(dead: DeadJob, why: str) -> None: ...

    @app.task(name="none")
    def none() -> None: ...

    handle: Any = app.on_dead()
    wrong: list[Any] = [charge, plain, two, none]
    for task in wrong:
        with pytest.raises(
            BadInput, match=rf"{task.name} cannot handle a death.*def {task.name}\(dead: DeadJob"
        ):
            handle(task)
        with pytest.raises(BadInput, match="cannot handle a death"):
            charge.using(on_dead=task)
    with pytest.raises(BadInput, match="not function"):
        handle(lambda dead: None)
    with pytest.raises(BadInput, match="not int"):
        charge.using(on_dead=3)
    with pytest.raises(BadInput, match="is not a task of this app"):
        an_app()[0].on_dead(charge)
    with pytest.raises(BadInput, match=r"bury takes a DeadJob.*@app.on_dead\(\) above"):
        app.on_dead(bury)  # `@app.on_dead` without brackets


def a_death(**instead: Any) -> DeadJob:
    return DeadJob(**{"id": show_id(new_id()), "task": "t", "queue": "q", "failure": Failure(), **instead})


def a_dead(**instead: Any) -> Death:
    given = {
        "id": new_id(),
        "task": "t",
        "queue": "q",
        "key": None,
        "attempts": 1,
        "crashes": 0,
        "replays": 0,
    }
    return Death(**{**given, "failure": Failure(), "codec": 1, "body": b"[[],{}]", **instead})


def test_the_id_of_a_handler() -> None:
    job = new_id()
    ids = {handler_id(job, replays) for replays in range(10_000)}
    assert len(ids) == 10_000
    assert job not in ids
    assert {UUID(bytes=each).version for each in ids} == {8}
    assert not ids & {handler_id(each, 0) for each in ids}
    assert handler_id(job, 0) != handler_id(new_id(), 0)


def test_a_dead_job_by_hand() -> None:
    """As a test of a handler makes it."""
    assert (a_death().args, a_death().kwargs) == ([], {})
    told = a_death(body='[["c"], {"n": 1}]')
    assert (told.args, told.kwargs) == (["c"], {"n": 1})


def test_a_handler_is_called_with_what_its_job_carries() -> None:
    _, _, bury = an_app()
    dead = a_dead(body=b'[["c"],{}]', failure=Failure(error="E", message="m", attempt=3, member="host:1"))
    new = handler_job("bury", TaskEntry(name="bury", queue="graves"), dead)
    ((told,), named) = bury.definition.decode(new.codec, new.body)
    assert isinstance(told, DeadJob)
    assert (told.id, told.args, told.failure, named) == (
        show_id(dead.id), ["c"], Failure(error="E", message="m"), {},
    )  # fmt: skip


def test_a_decorator_without_its_brackets_is_refused() -> None:
    """`@app.on_dead` above a task that says nothing of a DeadJob: as if its own deaths were to be handled."""
    app, charge, _ = an_app()

    @app.on_dead
    @app.task(name="meant")
    def meant(dead) -> None: ...  # type: ignore[no-untyped-def]

    with pytest.raises(BadInput, match=r"app.on_dead\(meant\) was given no handler: write @app.on_dead\(\)"):
        charge.call("c")
    with pytest.raises(BadInput, match="was given no handler"):
        app.registry.entry_of(charge.definition)


def test_a_call_without_a_handler() -> None:
    app, charge, bury = an_app()
    app.on_dead(charge)(bury)
    assert charge.using(on_dead=None).call("c").job.on_dead is None
    assert charge.using(on_dead=None).using(on_dead=bury).call("c").job.on_dead == "bury"


def test_a_refused_handler_leaves_no_trace() -> None:
    app, charge, bury = an_app()

    @app.task(name="mail")
    def mail() -> None: ...

    @app.task(name="other")
    def other(dead: DeadJob) -> None: ...

    app.on_dead(charge)(bury)
    handle = app.on_dead(mail, charge)
    with pytest.raises(BadInput, match="charge has a handler already"):
        handle(other)
    handle(bury)
    assert (charge.call("c").job.on_dead, mail.call().job.on_dead) == ("bury", "bury")


def test_a_declaration_that_failed_is_made_good_by_the_next() -> None:
    """As in a notebook: the cell below @app.on_dead(charge) was wrong."""
    app, charge, bury = an_app()
    app.on_dead(charge)
    with pytest.raises(BadInput, match="was given no handler"):
        charge.call("c")
    app.on_dead(charge)(bury)
    assert charge.call("c").job.on_dead == "bury"


def test_the_task_of_a_module_that_is_imported_a_second_time(tmp_path: Path) -> None:
    """It runs as a program, and imports one that imports it by its name."""
    (tmp_path / "shop.py").write_text(
        "from tidemill import DeadJob\ndef charge() -> None: ...\ndef bury(dead: DeadJob) -> None: ...\n"
    )

    def load(name: str) -> Any:
        spec = spec_from_file_location(name, tmp_path / "shop.py")
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    app = Tidemill("sqlite://")
    first, second = load("__shop__"), load("shop")
    charge = app.task(name="charge")(first.charge)
    app.task(name="charge")(second.charge)
    app.on_dead(charge)(app.task(name="bury")(first.bury))
    assert app.registry.handler_of(charge.definition) == "bury"


def test_a_handler_of_another_app_is_refused() -> None:
    app, charge, _ = an_app()
    with pytest.raises(BadInput, match="bury is not a task of this app"):
        app.on_dead(charge)(an_app()[2])


def test_a_handler_that_only_calls_choose_has_the_apps_retry_too() -> None:
    app = Tidemill("sqlite://")
    app.registry.retry = Retry(attempts=9)

    @app.task(name="special")
    def special(dead: DeadJob) -> None: ...

    assert app.registry.entry_of(special.definition).retry == Retry(attempts=9)
