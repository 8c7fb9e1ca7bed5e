"""The program of a worker process: `tidemill _child`, executed by a supervisor and by nothing else.

It loads the app, opens the engine, runs one `Worker` until that is drained, and sends how it went. The
supervisor decides about its life: orders come by the channel. When the supervisor is gone, the kernel kills
the process (`parent_death`), or the process ends by itself if its loop turns. SIGTERM and SIGINT are for the
supervisor to interpret: a service manager that signals the whole group must not make it drain twice, in two
ways.

It ends by its own decision only when it cannot go on. It sends the reason first, so that the
supervisor does not take that for a crash and blame the jobs that were running.

After its last message it ends, whatever still runs in it: a thread that a task started and forgot, an
`asyncio.to_thread` that outlived its task, code that cannot be stopped. The interpreter would wait for those,
and no new process would start. So `main` never returns, and what was registered with `atexit` is not called.
"""

import asyncio
import faulthandler
import gc
import importlib
import logging
import os
import signal
import socket
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, Protocol

from tidemill.engine.events.emitting import EmittingEngine
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.errors import ClaimantRetired, EngineUnavailable, StartupFailed, TidemillError
from tidemill.task.registry import Registry
from tidemill.worker.backoff import Backoff
from tidemill.worker.config import WorkerConfig
from tidemill.worker.logs import write_log
from tidemill.worker.member.messages import (
    CannotLoad,
    Channel,
    Drain,
    Drained,
    HeartbeatAnswered,
    Hello,
    Hurry,
    Leaving,
    Lost,
    PublishAgain,
    Published,
    Ready,
    RunStatistics,
    StopRequested,
    ToWorker,
    encode_line,
    receive_first,
    runs_of,
)
from tidemill.worker.member.parent_death import ORPHANED
from tidemill.worker.member.spawn import inherited, leave
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.process.startup import start_up
from tidemill.worker.runner.pool import RunnerPool
from tidemill.worker.running.notes import clip_line
from tidemill.worker.worker import Worker

CANNOT_LOAD = 78
"""The exit code of a process that could not begin. Its last message says why."""
COLLECT_AFTER = 5_000
"""The garbage collector runs after so many new objects. The jobs of a claim make some 2,000 at once, which
are all freed without it: with Python's own limit of 700 it would run in vain, for 5% of this process's
time."""
FAULT = 1
"""The exit code of a process that could not even send why it ends: its loop broke."""

log = logging.getLogger("tidemill.worker")


class WorkerApp(Protocol):
    """What a worker needs of an app."""

    @property
    def registry(self) -> Registry: ...

    def work_on(self, url: str, namespace: str) -> None:
        """Jobs that tasks enqueue go to the worker's engine, whatever URL the app has."""
        ...

    def adopt(self, engine: Engine) -> Callable[[], None]:
        """Let tasks that enqueue on the worker's loop use its engine. Returns what undoes that."""
        ...


LoadApp = Callable[[str], WorkerApp]


def main(load_app: LoadApp) -> NoReturn:
    """Run a worker process. Ends with the process."""
    faulthandler.enable()  # a segmentation fault leaves the line of the task in the log
    leave_signals_to_the_supervisor()
    end, (held_table_fd,) = inherited()
    hello = receive_first(end, Hello)
    write_log(hello.config.log_format)
    gc.set_threshold(COLLECT_AFTER)  # before the app is loaded, which may know better
    try:
        app = load_app(hello.config.app)
        for definition in app.registry.definitions():
            definition.signature.check()
    except (Exception, SystemExit) as error:
        if not isinstance(error, TidemillError):
            traceback.print_exc()
        end.sendall(encode_line(CannotLoad(f"{hello.config.app} cannot be loaded: {in_brief(error)}")))
        leave(CANNOT_LOAD)
    gc.collect()
    gc.freeze()  # what was loaded stays: later collections need not scan it
    app.work_on(hello.config.url, hello.config.namespace)
    child = WorkerMain(hello, app, HeldTable.attach(held_table_fd, hello.capacity), end)
    try:
        leave(asyncio.Runner(loop_factory=loop_factory()).run(child.run()))
    except BaseException:  # something that a task left on the loop has raised SystemExit, say
        traceback.print_exc()
        leave(FAULT)


class WorkerMain:
    """One worker process, from the inside."""

    def __init__(self, hello: Hello, app: WorkerApp, held_table: HeldTable, end: socket.socket) -> None:
        self._hello = hello
        self._app = app
        self._held_table = held_table
        self._end = end
        self._worker: Worker | None = None
        self._channel: Channel | None = None

    async def run(self) -> int:
        """Work until drained. Returns the exit code. The process must end at once after its last message."""
        channel = self._channel = await Channel.open(self._end, ToWorker, self._receive)
        watching = asyncio.create_task(_end_with(channel), name="supervisor")
        try:
            last_message: Drained | CannotLoad | Leaving = await self._work(channel)
        except ClaimantRetired as error:
            last_message = Leaving(in_brief(error))
        except Exception as error:
            log.exception("this worker process cannot go on")
            last_message = Leaving(in_brief(error))
        watching.cancel()
        self._send_statistics(channel)
        channel.send(last_message)
        channel.close()
        await channel.gone.wait()
        return CANNOT_LOAD if isinstance(last_message, CannotLoad) else 0

    def _send_statistics(self, channel: Channel) -> None:
        """What was counted since the last time. If it cannot be sent now, it is lost: statistics only."""
        if self._worker is not None and (rows := self._worker.take_statistics()):
            channel.send(RunStatistics(rows))

    async def _work(self, channel: Channel) -> Drained | CannotLoad:
        hello, config = self._hello, self._hello.config
        try:
            engine = await _connect(config)
        except TidemillError as error:
            return CannotLoad(in_brief(error))
        processes = RunnerPool(
            config.app,
            most=config.slots,
            log_format=config.log_format,
            url=config.url,
            namespace=config.namespace,
            recycle=config.recycle,
        )
        disown = self._app.adopt(engine)
        registry = self._app.registry
        try:
            try:
                await start_up(registry)
            except StartupFailed as error:
                return CannotLoad(in_brief(error))
            self._worker = Worker(
                engine,
                registry,
                config,
                member=bytes.fromhex(hello.member),
                claimant=bytes.fromhex(hello.claimant),
                held_table=self._held_table,
                processes=processes,
                takes_suspects=hello.takes_suspects,
            )
            queues = list(config.queues or registry.queue_names())
            channel.send(
                Ready(queues, registry.schedule_names(), registry.declared_queues(), registry.task_names())
            )
            saying = asyncio.create_task(self._say_published(channel, self._worker))
            try:
                return await self._worker.run()
            finally:
                saying.cancel()
        finally:
            await processes.close()
            disown()
            await engine.close()

    async def _say_published(self, channel: Channel, worker: Worker) -> None:
        await worker.moments.reached("published")
        channel.send(Published())

    def _receive(self, message: ToWorker) -> None:
        worker = self._worker
        if worker is None:  # the supervisor kills one that has not begun; heartbeats come again
            return
        match message:
            case Drain(timeout_s):
                worker.drain(timeout_s)
            case Hurry():
                worker.hurry()
            case StopRequested(runs):
                worker.stop_requested(runs_of(runs))
            case Lost(fences):
                worker.lost(fences)
            case HeartbeatAnswered(ok, options):
                worker.heartbeat_answered(ok, options)
                if ok and self._channel is not None:
                    self._send_statistics(self._channel)
            case PublishAgain():
                worker.publish_again()


async def _end_with(channel: Channel) -> None:
    """The supervisor is gone, and with it our lease."""
    await channel.gone.wait()
    os._exit(ORPHANED)


async def _connect(config: WorkerConfig) -> Engine:
    """Open the engine, however long it takes: the supervisor decides when to give up."""
    backoff, warned = Backoff(), False
    while True:
        try:
            return EmittingEngine(await connect(config.url, namespace=config.namespace))
        except EngineUnavailable as error:
            log.log(
                logging.DEBUG if warned else logging.WARNING,
                "the engine cannot be reached, trying again: %s",
                error,
            )
            warned = True
            await asyncio.sleep(backoff.next_s())


def leave_signals_to_the_supervisor() -> None:
    """Handlers that do nothing: unlike ignored signals they are not inherited by what tasks start."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, if it is installed."""
    with suppress(ImportError):
        factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
        return factory
    return None


def in_brief(error: BaseException) -> str:
    """An error in a few words that can be sent. The message of our own errors is enough."""
    return clip_line(str(error) if isinstance(error, TidemillError) else f"{type(error).__name__}: {error}")
