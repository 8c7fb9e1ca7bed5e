"""The supervisor: `tidemill worker`.

It is a *member*: the process that sends heartbeats. It runs no task and does not even import the app. It
starts worker processes (one for each `Respawn`), sends the heartbeats for all of them, kills those that are
stuck, and reports those that died to the engine. It is small on purpose: what it does not import cannot crash
it, and it must live on when everything else dies.

**Who has authority.** The engine over runs, the supervisor over processes. A worker process decides nothing
about its own end: it drains when told to, and the kernel kills it when its supervisor is gone
(`parent_death`).

**Signals.** The first SIGTERM or SIGINT (or SIGHUP, of a terminal that closes) drains: nothing new is
claimed, and running jobs may finish until `shutdown_timeout`. The second says that the deadline is now. The
third kills. Worker processes have sessions of their own, so a Ctrl-C comes to the supervisor alone.

**Ending.**

| exit code | |
|---|---|
| 0 | drained, everything that ran has finished |
| 1 | drained, some jobs were handed back; the log says how many |
| 75 | gave up: the engine was out of reach for `give_up_after` heartbeats, and nothing runs any more |

Faults of the supervisor itself raise, after the worker processes were killed and their jobs released. An app
that cannot be loaded is `BadInput`, unless it was loaded once: then a deploy may be under way, and it is
tried again.
"""

import asyncio
import gc
import logging

import msgspec

from tidemill.engine.events.emitting import EmittingEngine
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.errors import BadInput, EngineUnavailable, SingleProcess
from tidemill.model.time import Instant
from tidemill.worker.config import WorkerConfig
from tidemill.worker.logs import write_log
from tidemill.worker.member.member import GAVE_UP, LocalMember

log = logging.getLogger("tidemill.worker")


def supervise(config: WorkerConfig) -> int:
    """Work until told to stop. Returns the exit code. Errors that a user can fix are `TidemillError`s."""
    gc.freeze()  # what is imported stays: nobody need look for garbage in it, neither now nor at the end
    write_log(config.log_format)
    return asyncio.run(_supervise(config))


async def _supervise(config: WorkerConfig) -> int:
    try:
        engine, now = await _connect(config)
    except EngineUnavailable as error:
        log.error("giving up: %s", error)
        return GAVE_UP
    config = msgspec.structs.replace(config, began=now)
    try:
        if engine.single_process:
            raise SingleProcess(
                f"{engine.name} lives in one process, and a worker has several: use a file "
                "(sqlite:///tidemill.db), or run the worker inside your program by app.worker()"
            )
        return await LocalMember(engine, config).run()
    except BaseExceptionGroup as group:
        raise _first(group) from group
    finally:
        await engine.close()


async def _connect(config: WorkerConfig) -> tuple[Engine, Instant]:
    """Open the engine and read its time. It is tried as often as a heartbeat would be."""
    for failures in range(1, config.give_up_after + 1):
        try:
            engine = EmittingEngine(await connect(config.url, namespace=config.namespace))
            try:
                return engine, await engine.now()
            except BaseException:
                await engine.close()
                raise
        except EngineUnavailable as error:
            if failures == config.give_up_after:
                raise
            log.warning("the engine cannot be reached, trying again: %s", error)
            await asyncio.sleep(config.heartbeat_s)
    raise BadInput(f"give_up_after must be 1 or more, not {config.give_up_after}")


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of the group: the rest was cancelled because of it."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
