"""What a runner sends while handlers of signals raise, or note something themselves."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.interrupts import Interrupted, disturbed_at, interrupted_at
from tidemill.worker.member.messages import Lines
from tidemill.worker.runner.main import OutgoingLine, RunnerChannel, RunnerNotes
from tidemill.worker.runner.messages import Began, FromRunner, Noted

PATIENCE_S = 20


class Pieces(socket.socket):
    """Takes a few bytes at a time, as where the other side reads slowly. Handlers run before each piece."""

    handlers: tuple[Callable[[], object], ...] = ()

    def send(self, data: Any, *_: object) -> int:
        handlers, self.handlers = self.handlers, self.handlers[1:]
        if handlers:
            handlers[0]()
        return super().send(data[:5])


def nothing() -> None: ...


class Ends:
    """A runner's end, and the worker process's."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.ours = Pieces(fileno=ours.detach())
        self.channel = RunnerChannel(self.ours)
        self.notes = RunnerNotes(self.channel)
        self._lines = Lines(FromRunner)

    def received(self) -> list[FromRunner]:
        """What has come. Fails where a line is not whole."""
        return self._lines.feed(self.theirs.recv(1 << 20))


@pytest.fixture
def ends() -> Iterator[Ends]:
    ends = Ends()
    with ends.ours, ends.theirs:
        yield ends


def texts(messages: list[FromRunner]) -> list[str]:
    return [text for message in messages if isinstance(message, Noted) for _, text in message.lines]


def in_another_thread(call: Callable[[], object]) -> None:
    """As the listener's. Fails where a lock has stayed locked."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive(), "a lock has stayed locked"


def log_later(ends: Ends, text: str) -> None:
    """Log a line that is not sent yet."""
    ends.notes.flush()
    ends.notes.log("info", text)


@pytest.mark.row("A4")
def test_an_interrupt_at_any_moment_leaves_nothing_locked_and_loses_nothing(ends: Ends) -> None:
    moment, interrupted = 0, True
    received: list[FromRunner] = []
    while interrupted:
        moment += 1
        log_later(ends, "first")
        ends.notes._sent_at = 0.0  # due
        interrupted = interrupted_at(moment, lambda: ends.notes.log("info", "second"))
        in_another_thread(ends.notes.flush)
        in_another_thread(lambda: ends.channel.send(Began()))
        received = ends.received()
        assert texts(received)[:1] == ["first"]
        assert texts(received)[1:] in ([], ["second"]), "once, or not at all"
        assert received[-1] == Began()
    assert texts(received) == ["first", "second"]
    assert moment > 10


@pytest.mark.row("A4")
def test_a_handler_that_logs_at_any_moment_waits_for_nothing_and_loses_nothing(ends: Ends) -> None:
    """Its own thread may hold the lock."""
    moment, disturbed = 0, True
    while disturbed:
        moment += 1
        log_later(ends, "first")
        ends.notes._sent_at = 0.0
        disturbed = disturbed_at(
            moment,
            lambda: ends.notes.log("info", "second"),
            lambda: ends.notes.log("info", "of the handler"),
        )
        in_another_thread(ends.notes.flush)
        noted = texts(ends.received())
        assert sorted(noted) == sorted(["first", "second", *["of the handler"] * disturbed])
    assert moment > 10


def test_a_line_that_was_interrupted_is_sent_to_its_end_before_the_next(ends: Ends) -> None:
    def interrupt() -> None:
        raise Interrupted

    ends.ours.handlers = (nothing, interrupt)
    with pytest.raises(Interrupted):
        ends.channel.send(Began())
    ends.channel.send(Noted(b"1", []))
    assert ends.received() == [Began(), Noted(b"1", [])]


def test_a_handler_that_sends_in_the_middle_of_a_line_does_not_tear_it(ends: Ends) -> None:
    ends.ours.handlers = (nothing, lambda: ends.channel.send(Began()))
    ends.channel.send(Noted(b"1", []))
    assert ends.received() == [Noted(b"1", []), Began()]


def test_an_error_of_a_handler_is_not_the_end_of_the_channel(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TimeoutError, which handlers like to raise, is an OSError."""
    monkeypatch.setattr(os, "_exit", lambda code: pytest.fail("the process ended"))

    def time_out() -> None:
        raise TimeoutError

    ends.ours.handlers = (time_out,)
    with pytest.raises(TimeoutError):
        ends.channel.send(Began())
    ends.channel.send_waiting()
    assert ends.received() == [Began()]


def test_notes_wait_for_no_line_that_is_being_sent() -> None:
    """Else a handler that notes something, in the thread that sends, would wait for a thread that waits for
    that thread."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel = RunnerChannel(ours)
        notes = RunnerNotes(channel)
        channel.put(OutgoingLine("x" * (4 << 20)))  # more than the socket holds
        thread = threading.Thread(target=notes.log, args=("info", "while it is sent"))
        thread.start()
        while not channel._sending:
            time.sleep(0)
        assert notes._lock.acquire(timeout=PATIENCE_S)
        notes._lock.release()
        received = b""
        while received.count(b"\n") < 2:
            received += theirs.recv(1 << 20)
        thread.join()
