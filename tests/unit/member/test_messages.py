"""Messages between a supervisor and its processes."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tidemill.model.ids import new_id
from tidemill.worker.member import messages as messages_module
from tidemill.worker.member.messages import (
    CannotLoad,
    Channel,
    Drain,
    Drained,
    FromWorker,
    HeartbeatAnswered,
    Hurry,
    Leaving,
    Lines,
    Lost,
    Ready,
    StopRequested,
    ToWorker,
    encode_line,
    runs_of,
)

PATIENCE_S = 20


class Ends:
    """Both ends on one loop, and what each has received."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[Any] = asyncio.Queue()
        self.received_by_worker: asyncio.Queue[Any] = asyncio.Queue()

    async def open(self) -> None:
        ours, theirs = socket.socketpair()
        self.supervisor = await Channel.open(ours, FromWorker, self.received.put_nowait)
        self.worker = await Channel.open(theirs, ToWorker, self.received_by_worker.put_nowait)


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    ends = Ends()
    await ends.open()
    yield ends
    ends.supervisor.close()
    ends.worker.close()
    await asyncio.wait_for(ends.worker.gone.wait(), PATIENCE_S)


async def test_every_message_arrives_as_it_was_sent(ends: Ends) -> None:
    asked, lost = StopRequested([(new_id().hex(), 7)]), Lost([1, 2**53 - 1])
    to_worker = [Drain(30.0), Drain(None), Hurry(), asked, lost, HeartbeatAnswered(ok=False)]
    from_worker = [
        Ready(["a", "b"]),
        CannotLoad("no\nsuch app"),
        Leaving("retired"),
        Drained(3, 4),
    ]
    assert all(ends.supervisor.send(message) for message in to_worker)
    assert all(ends.worker.send(message) for message in from_worker)
    assert [await ends.received_by_worker.get() for _ in to_worker] == to_worker
    assert [await ends.received.get() for _ in from_worker] == from_worker


async def test_what_was_sent_last_is_received_before_the_end(ends: Ends) -> None:
    ends.worker.send(Drained(1, 0))
    ends.worker.close()
    await asyncio.wait_for(ends.supervisor.gone.wait(), PATIENCE_S)
    assert ends.received.get_nowait() == Drained(1, 0)
    assert ends.supervisor.send(Hurry()) is False


@pytest.mark.row("A12")
async def test_what_was_sent_last_is_received_though_we_cannot_send_any_more() -> None:
    """As where a heartbeat's answer comes between a process's last message and the moment that we read it."""
    received: list[FromWorker] = []
    ours, theirs = socket.socketpair()
    channel = await Channel.open(ours, FromWorker, received.append)
    with theirs:
        theirs.sendall(encode_line(Leaving("retired")) + encode_line(Drained(1, 2)))
    assert channel.send(HeartbeatAnswered(ok=True)) is False
    assert channel.send(HeartbeatAnswered(ok=True)) is False
    await asyncio.wait_for(channel.gone.wait(), PATIENCE_S)
    assert received == [Leaving("retired"), Drained(1, 2)]


@pytest.mark.row("A12")
async def test_what_was_sent_last_is_received_though_something_waits_to_be_sent() -> None:
    received: list[FromWorker] = []
    ours, theirs = socket.socketpair()
    last_messages = [Leaving("retired"), Drained(1, 2)] * 10
    channel = await Channel.open(ours, FromWorker, received.append)
    with theirs:
        while not channel._sending.get_write_buffer_size():
            assert channel.send(Lost(list(range(1_000))))
        theirs.sendall(b"".join(map(encode_line, last_messages)))
    await asyncio.wait_for(channel.gone.wait(), PATIENCE_S)
    assert received == last_messages


class Refusing(socket.socket):
    """As where the system has no memory left."""

    def send(self, *_: object) -> int:
        raise OSError(errno.ENOBUFS, "No buffer space available")


@pytest.mark.row("A12")
async def test_a_peer_that_cannot_be_sent_to_sees_the_end_and_is_read_to_its_own() -> None:
    received: list[FromWorker] = []
    ours, theirs = socket.socketpair()
    channel = await Channel.open(Refusing(fileno=ours.detach()), FromWorker, received.append)
    with theirs:
        assert channel.send(Hurry()) is False
        assert await asyncio.wait_for(asyncio.to_thread(theirs.recv, 1), PATIENCE_S) == b""
        assert not channel.gone.is_set()
        theirs.sendall(encode_line(Leaving("the supervisor is gone")))
    await asyncio.wait_for(channel.gone.wait(), PATIENCE_S)
    assert received == [Leaving("the supervisor is gone")]


async def test_a_receiver_that_fails_ends_the_channel() -> None:
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    ours, theirs = socket.socketpair()
    channel = await Channel.open(ours, FromWorker, lambda message: 1 / 0)  # type: ignore[arg-type]
    with theirs:
        theirs.sendall(encode_line(Drained(1, 2)))
        await asyncio.wait_for(channel.gone.wait(), PATIENCE_S)
        assert theirs.recv(1) == b""
    assert [type(fault["exception"]) for fault in faults] == [ZeroDivisionError]
    assert channel.send(Hurry()) is False


async def test_a_peer_that_does_not_read_lets_nothing_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_module, "PENDING_LIMIT", 10_000)
    ours, theirs = socket.socketpair()
    channel = await Channel.open(ours, FromWorker, lambda message: None)
    sent = 0
    while channel.send(Lost(list(range(1_000)))):
        sent += 1
        assert sent < 10_000
    assert sent > 2
    with theirs:
        channel.close()
        lines = Lines(ToWorker)
        received: list[ToWorker] = []
        while len(received) < sent:  # what was accepted is still delivered
            received += lines.feed(await asyncio.to_thread(theirs.recv, 1 << 20))
    await asyncio.wait_for(channel.gone.wait(), PATIENCE_S)


def test_lines_are_put_together_from_any_pieces() -> None:
    data = b"".join(encode_line(message) for message in (Ready(["ü"]), Drained(1, 2), Leaving("retired")))
    for size in (1, 2, 7, len(data)):
        lines = Lines(FromWorker)
        received = [
            message
            for at in range(0, len(data), size)
            for message in lines.feed(data[at : at + size])
        ]  # fmt: skip
        assert received == [Ready(["ü"]), Drained(1, 2), Leaving("retired")]


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_module, "LINE_LIMIT", 100)
    lines = Lines(FromWorker)
    lines.feed(b"x" * 100)
    with pytest.raises(ValueError, match="a line of more than 100 bytes"):
        lines.feed(b"x")


def test_runs_are_named_as_the_engine_names_them() -> None:
    job_id = new_id()
    assert runs_of([(job_id.hex(), 5)]) == [(job_id, 5)]


async def test_what_the_sending_side_reads_is_received_too(ends: Ends) -> None:
    """uvloop's transports begin to read after they were told not to."""
    ends.supervisor._reading.pause_reading()
    ends.supervisor._sending.resume_reading()
    ends.worker.send(Ready(["default"]))
    async with asyncio.timeout(PATIENCE_S):
        assert await ends.received.get() == Ready(["default"])
    ends.supervisor._reading.resume_reading()
