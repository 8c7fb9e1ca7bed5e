"""Names that may be misspelt: a warning where the job is enqueued."""

import logging

import pytest

from tidemill import BadInput, Tidemill
from tidemill.app.enqueueing import unknown_names


@pytest.fixture(autouse=True)
def _nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name is named once in a process; tests share one."""
    monkeypatch.setattr(unknown_names, "_named", set())


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [entry.getMessage() for entry in caplog.records if entry.name == "tidemill"]


def test_a_misspelt_queue_is_named_once_with_the_nearest(
    app: Tidemill, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(queue="email")
    def send() -> None: ...

    caplog.set_level(logging.WARNING)
    misspelt, late = send.using(queue="emial"), send.using(queue="bulk")
    app.queue("bulk")  # declared after it was named, before it is used
    for each in (misspelt, misspelt, late, send, send.using(queue="default")):
        each.enqueue()
    send.using(queue="emial").enqueue()
    [warning] = warnings(caplog)
    assert warning.startswith("the queue 'emial' is neither declared nor used by a task here; did you mean")
    assert "did you mean 'email'? its jobs wait until a worker takes it" in warning


def test_a_misspelt_task_by_name_is_named_once(app: Tidemill, caplog: pytest.LogCaptureFixture) -> None:
    @app.task(name="shop.send", queue="email")
    def send() -> None: ...

    caplog.set_level(logging.WARNING)
    for _ in range(2):
        app.enqueue("shop.sned", queue="email")
    app.enqueue("shop.send")
    [warning] = warnings(caplog)
    assert warning.startswith("no task 'shop.sned' is known here or to any worker; did you mean 'shop.send'?")


async def test_a_program_without_code_of_its_own_knows_what_workers_publish(
    url: str, app: Tidemill, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(name="shop.send", queue="email")
    async def send() -> None: ...

    other = Tidemill(app.url)

    @other.task(name="shop.other")
    async def unrelated() -> None: ...

    caplog.set_level(logging.WARNING)
    async with app.worker():
        await (await send.aenqueue()).aresult(timeout=30)
        await other.aenqueue("shop.send", queue="email")  # another app's queue
        assert warnings(caplog) == []
        await other.aenqueue("shop.send", queue="emial")
    assert len(warnings(caplog)) == 1
    await app.aclose()
    await other.aclose()


def test_a_program_that_declares_nothing_is_not_warned(
    app: Tidemill, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(name="shop.send", queue="email")
    def send() -> None: ...

    caplog.set_level(logging.WARNING)
    other = Tidemill(app.url)
    send.enqueue()
    with pytest.raises(BadInput, match=r"no task 'shop\.sned' is known"):
        other.enqueue("shop.sned")
    other.close()
    assert warnings(caplog) == []


def test_strict_queues_refuse_and_name_the_nearest() -> None:
    strict = Tidemill("sqlite://", strict_queues=True)
    strict.queue("email")

    @strict.task(queue="email")
    def send() -> None: ...

    with pytest.raises(
        BadInput, match=r"'emial' was not declared .*; did you mean 'email'\? declared: email"
    ):
        send.using(queue="emial")
