"""The program of a runner process: `tidemill _runner`, executed by a worker process and by nobody else.

The main thread runs jobs, because code that wants a process often wants its main thread too (signals, some
native libraries). A second thread receives the messages of the worker process: it hands over jobs, sets the
abort flag, and sends the notes that wait. When the channel ends while nothing runs, the process ends in good
order. While something runs it ends at once, because nobody is left to receive the outcome.

SIGTERM does nothing by itself. The message that comes with it carries the reason to stop, and a service
manager that signals every process of a service must not stop jobs that have until the drain's deadline. Code
that wants to react to SIGTERM sets its own handler.

**Every message can be sent.** Lines and failures are cut to their bounds before they are sent, as the engine
would cut them anyway, and escaped where they are not text that can be encoded. A message too long for the
channel would look like a crash of the job that caused it.

**A handler of a signal may raise at any moment, or note something**: the main thread, which sends, is where
handlers run. No lock stays locked then (`engine.locked`). A line that was half sent is sent to its end before
the next one. A note that was taken is sent once.

**A fault in either thread ends the process.** Otherwise the worker process would keep it, and give it jobs
that it never receives.
"""

import asyncio
import faulthandler
import os
import queue
import select
import signal
import socket
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from tidemill.engine.boot import boot_ns
from tidemill.engine.locked import locked
from tidemill.engine.protocol import TransactionsFacet
from tidemill.model.errors import UNSTORABLE, TidemillError
from tidemill.model.jobs.fingerprint import as_recorded
from tidemill.model.jobs.job import MESSAGE_LIMIT, Failure, FailureKind
from tidemill.model.jobs.run import ClaimedJob, Note
from tidemill.model.time import SECOND, Span
from tidemill.task.current import CURRENT, Aborted, ControlledJob
from tidemill.task.definition import Definition
from tidemill.task.failures import failure_of, lineage
from tidemill.task.later import RetryAfter, Snooze
from tidemill.task.registry import Registry
from tidemill.worker.logs import write_log
from tidemill.worker.member.messages import Lines, encode_line, receive_first
from tidemill.worker.member.parent_death import ORPHANED
from tidemill.worker.member.spawn import inherited, leave
from tidemill.worker.runner.messages import (
    AbortedRun,
    Began,
    CameLate,
    Completing,
    HoldAnswer,
    Noted,
    Open,
    Perform,
    Raised,
    Returned,
    RunnerCannotLoad,
    Stop,
    ToRunner,
)
from tidemill.worker.running.notes import clip_line

FLUSH_S = 0.2
"""Notes wait at most about this long."""
PENDING_LINES = 1_000
PENDING_LENGTH = 256 << 10
"""Characters of lines that wait, at most about: in JSON each may take six bytes, and a message 16 MiB."""
CANNOT_LOAD = 78
FAULT = 1
"""The exit code after a fault of our own."""


class RunnerApp(Protocol):
    """What a runner needs of an app."""

    @property
    def registry(self) -> Registry: ...

    def work_on(self, url: str, namespace: str) -> None: ...

    def transactions(self) -> TransactionsFacet: ...

    async def atransactions(self) -> TransactionsFacet: ...


def main(load_app: Callable[[str], RunnerApp]) -> None:
    """Run jobs until the worker process closes the channel."""
    faulthandler.enable()
    signal.signal(signal.SIGTERM, lambda *_: None)
    end = inherited().channel
    opened, channel = receive_first(end, Open), RunnerChannel(end)
    write_log(opened.log_format)
    try:
        app = load_app(opened.app)
        if opened.url:
            app.work_on(opened.url, opened.namespace)
    except (Exception, SystemExit) as error:
        if not isinstance(error, TidemillError):
            traceback.print_exc()
        channel.send(
            RunnerCannotLoad(clip_line(f"{opened.app} cannot be loaded: {type(error).__name__}: {error}"))
        )
        leave(CANNOT_LOAD)
    try:
        run_jobs(app, channel)
    except BaseException:
        traceback.print_exc()
        leave(FAULT)


class OutgoingLine:
    """A message on its way, and how much of it was sent."""

    __slots__ = ("_line", "sent")

    def __init__(self, message: object) -> None:
        self._line = encode_line(message)
        self.sent: list[int] = []

    def rest(self) -> bytes:
        return self._line[sum(self.sent) :]


class RunnerChannel:
    """The channel, without a loop: one thread may receive while others send."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._lock = threading.RLock()
        self._waiting: deque[OutgoingLine] = deque()
        self._sending = False
        self.put = self._waiting.append
        """Lets a line wait for `send_waiting`. (One call in C: an interrupt comes before it or after it.)"""

    def send(self, message: object) -> None:
        """Send a message. Waits while the other side does not read: a job that notes without end is slowed
        down."""
        self.put(OutgoingLine(message))
        self.send_waiting()

    def send_waiting(self) -> None:
        """Send what waits."""
        locked(self._lock, self._send_waiting)

    def _send_waiting(self) -> None:
        if self._sending:  # a handler of a signal, in the middle of a line: this one is sent after that
            return
        self._sending = True
        try:
            while self._waiting:
                line = self._waiting[0]
                if rest := line.rest():
                    line.sent.extend(map(self._end.send, (rest,)))  # noted in the same call in C
                else:
                    self._waiting.popleft()
        except ConnectionError:  # nobody is left to receive it
            os._exit(ORPHANED)
        finally:
            self._sending = False

    def wait(self, timeout_s: float) -> bool:
        """Whether something has come."""
        return bool(select.select((self._end,), (), (), timeout_s)[0])

    def read(self) -> bytes:
        """What has come; nothing: the end."""
        try:
            return self._end.recv(1 << 16)
        except ConnectionError:
            return b""


class RunnerNotes:
    """Notes of the job that runs, on their way. From any thread."""

    def __init__(self, channel: RunnerChannel) -> None:
        self._channel = channel
        self._lock = threading.RLock()
        self._progress: bytes | None = None
        self._lines: list[tuple[str, str]] = []
        self._length = 0
        self._sent_at = 0.0
        self._flushing = False

    def progress(self, value: bytes) -> None:
        value = clip_progress(value)
        locked(self._lock, lambda: self._keep(value))
        self._flush_if_due()

    def log(self, level: str, message: str) -> None:
        line = clip_line(message)
        locked(self._lock, lambda: self._add(level, line))
        self._flush_if_due()

    def flush(self) -> None:
        """Send what waits. It is sent after the lock is released: else a handler of a signal that notes
        something, in a thread that is just sending, would wait for a thread that waits for it."""
        locked(self._lock, self._hand_over)
        self._channel.send_waiting()

    def _keep(self, progress: bytes) -> None:
        self._progress = progress

    def _add(self, level: str, line: str) -> None:
        length = len(line)
        self._length += length
        self._lines.append((level, line))

    def _hand_over(self) -> None:
        if self._flushing:  # the handler of a signal notes something, in the middle of this: it waits
            return
        self._flushing = True
        try:
            self._sent_at = time.monotonic()
            while self._progress is not None or self._lines:  # again, if a handler has noted something
                progress, length, lines = self._progress, self._length, self._lines.copy()
                count, put, noted = len(lines), self._channel.put, OutgoingLine(Noted(progress, lines))
                # From here on to the end of `put` nothing is called, so no handler runs: each note goes once.
                del self._lines[:count]
                self._length -= length
                if self._progress is progress:
                    self._progress = None
                put(noted)
        finally:
            self._flushing = False

    def _flush_if_due(self) -> None:
        full = len(self._lines) >= PENDING_LINES or self._length >= PENDING_LENGTH
        if full or time.monotonic() - self._sent_at >= FLUSH_S:
            self.flush()


def clip_progress(value: bytes) -> bytes:
    """Its message bounded as a line is."""
    if len(value) <= MESSAGE_LIMIT:
        return value
    progress = msgspec.json.decode(value)
    return msgspec.json.encode({**progress, "message": clip_line(str(progress["message"]))})


class RunnerListener(threading.Thread):
    """Receives from the worker process while the main thread runs a job."""

    def __init__(self, channel: RunnerChannel, app: RunnerApp) -> None:
        super().__init__(name="tidemill-listener", daemon=True)
        self._channel = channel
        self._app = app
        self.held: queue.SimpleQueue[list[Note]] = queue.SimpleQueue()
        self.jobs: queue.SimpleQueue[ClaimedJob | None] = queue.SimpleQueue()
        self.running: ControlledJob | None = None
        self.notes: RunnerNotes | None = None
        self.between = (0, 0)
        """From when to when the job may start that was handed over last."""

    def finish(self) -> None:
        """The job's code has ended: nothing more is noted, and there is nothing left to stop."""
        notes, self.notes = self.notes, None
        if notes is not None:
            notes.flush()
        self.running = None

    def run(self) -> None:
        try:
            self._listen()
        except BaseException:
            traceback.print_exc()
            leave(FAULT)

    def _listen(self) -> None:
        lines = Lines(ToRunner)
        while True:
            notes = self.notes
            if notes is not None and not self._channel.wait(FLUSH_S):
                notes.flush()
                continue
            data = self._channel.read()
            if not data:
                break
            for message in lines.feed(data):
                self._receive(message)
        if self.running is not None:
            os._exit(ORPHANED)
        self.jobs.put(None)

    def _receive(self, message: ToRunner) -> None:
        match message:
            case Perform(job, start_ns, start_by_ns):
                self.notes = RunnerNotes(self._channel)
                means = RunnerMeans(self._app, job, self.notes, self._channel, self.held)
                self.running = ControlledJob(job, self.notes, means)
                self.between = start_ns, start_by_ns
                self.jobs.put(job)
            case HoldAnswer(notes):
                self.held.put(notes)
            case Stop(reason):
                if self.running is not None:
                    self.running.abort(reason)


class RunnerMeans:
    """How a job completes itself here (`tidemill.task.current.Means`): on a connection that its code opened
    in this process, by the app's own engine. The worker process is notified first, and answers with what the
    job noted."""

    def __init__(
        self,
        app: RunnerApp,
        job: ClaimedJob,
        notes: RunnerNotes,
        channel: RunnerChannel,
        held: "queue.SimpleQueue[list[Note]]",
    ) -> None:
        self._app = app
        self._job = job
        self._notes = notes
        self._channel = channel
        self._held = held
        self._began = time.monotonic()

    def encode_result(self, value: object) -> bytes | None:
        definition = self._app.registry.find(self._job.task)
        assert definition is not None
        return definition.encode_result(value)

    def ran_so_far(self) -> Span:
        return round((time.monotonic() - self._began) * SECOND)

    def hold(self) -> tuple[TransactionsFacet | None, list[Note]]:
        transactions = self._app.transactions()
        return transactions, self.hold_notes()

    async def ahold(self) -> tuple[TransactionsFacet | None, list[Note]]:
        transactions = await self._app.atransactions()
        return transactions, await asyncio.to_thread(self.hold_notes)

    def hold_notes(self) -> list[Note]:
        self._notes.flush()
        self._channel.send(Completing())
        return self._held.get()


def run_jobs(app: RunnerApp, channel: RunnerChannel) -> None:
    """One job after the other."""
    registry = app.registry
    listener = RunnerListener(channel, app)
    listener.start()
    while (job := listener.jobs.get()) is not None:
        running = listener.running
        assert running is not None
        channel.send(Began())
        outcome = perform(registry.find(job.task), job, running, listener.between)
        listener.finish()
        channel.send(outcome)


def perform(
    definition: Definition | None,
    job: ClaimedJob,
    running: ControlledJob,
    between: tuple[int, int] = (0, 0),
) -> Returned | Raised | AbortedRun | CameLate:
    """Run one job to its outcome. Whatever it raises is its failure, and never ends this process. `between`:
    from when to when it may start (`Perform`)."""
    if definition is None:
        failure = Failure(error="tidemill.UnknownTask", message=f"no task {job.task!r} in this process")
        return Raised(failure=failure, lineage=[failure.error, "builtins.Exception"])
    try:
        args, kwargs = definition.decode(job.codec, job.body)
    except Exception as error:  # BadPayload, or whatever a type of the user's raises while it is built
        return _raised(error, "payload")
    start_ns, start_by_ns = between
    while (early_ns := start_ns - boot_ns()) > 0:
        time.sleep(early_ns / 1e9)
    if 0 < start_by_ns < boot_ns():
        return CameLate()
    token = CURRENT.set(running)
    try:
        value = _call(definition, args, kwargs)
        if running.completing:
            return Returned(None, completing=True)
        return Returned(definition.encode_result(value))
    except Aborted as error:
        if running.aborted is not None:
            return AbortedRun(running.aborted)
        return _raised(error)
    except UNSTORABLE as error:
        return _raised(error, "payload")
    except BaseException as error:
        return _raised(error)
    finally:
        CURRENT.reset(token)


def _raised(error: BaseException, kind: FailureKind = "error") -> Raised:
    return Raised(
        failure=as_recorded(failure_of(error, kind)),
        lineage=lineage(error),
        retry_after=error.delay if isinstance(error, RetryAfter) else None,
        snooze=error.delay if isinstance(error, Snooze) else None,
    )


def _call(definition: Definition, args: Any, kwargs: dict[str, Any]) -> object:
    if definition.is_async:
        return asyncio.run(definition.function(*args, **kwargs))
    return definition.function(*args, **kwargs)
