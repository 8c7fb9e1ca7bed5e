"""The sessions of a program's own loops: calls there go straight to an engine, with no thread in between.

An engine comes to a loop in two ways. A worker brings its own (`adopt`), and closes it. `async with app:`
opens one for the loop that it runs on (`enter`): the first block there opens it, every further one, nested or
in another task, shares it, and the last one out closes it. Where a loop has both, calls use that of the
block: it is there for as long as the caller says, and a worker's is not.

Every call on the loop uses it, also that of a task which knows nothing of the block (a request, where the
block is around the server's whole life). So a call counts as one more inside for as long as it lasts
(`hold`): no block that ends takes the engine away from it.

Each loop's part is touched on that loop only. After a fork the child has none of this.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from tidemill.app.access.session import EngineSession
from tidemill.engine.protocol import Engine

Loop = asyncio.AbstractEventLoop
LetGo = Callable[[], Awaitable[None]]


class Block:
    """What the `async with app:` of one loop share."""

    def __init__(self, session: EngineSession) -> None:
        self.session = session
        self.inside = 0
        """Blocks, and calls under way."""


class Loops:
    """The sessions of one app, by loop."""

    def __init__(self, open_engine: Callable[[], Coroutine[Any, Any, Engine]]) -> None:
        self._open_engine = open_engine
        self._blocks: dict[Loop, Block] = {}
        self._adopted: dict[Loop, EngineSession] = {}

    def here(self) -> EngineSession | None:
        """The session of the running loop, if it has one that is open."""
        loop = asyncio.get_running_loop()
        block = self._blocks.get(loop)
        if block is not None and block.session.open_engine_or_none is not None:
            return block.session
        return self._adopted.get(loop)

    def adopt(self, session: EngineSession) -> None:
        """A worker brings this one."""
        self._adopted[session.loop] = session

    def disown(self, session: EngineSession) -> None:
        """The opposite of `adopt`."""
        session.abandon()
        if self._adopted.get(session.loop) is session:
            del self._adopted[session.loop]

    async def enter(self) -> None:
        """A block begins. Raises what opening raises; then it has not begun."""
        loop = asyncio.get_running_loop()
        block = self._blocks.get(loop)
        if block is None:
            block = self._blocks[loop] = Block(EngineSession(loop, self._open_engine))
        block.inside += 1
        try:
            await block.session.opened()
        except BaseException:
            await self._leave(block)
            raise

    async def leave(self) -> None:
        """A block ends: enqueues already made are finished."""
        block = self._blocks.get(asyncio.get_running_loop())
        if block is not None:  # else we are the child of a fork
            await self._leave(block)

    def hold(self, session: EngineSession) -> LetGo:
        """If it is that of a block, it stays open until this is let go. On its loop; no await between `here`
        and this."""
        block = self._blocks.get(session.loop)
        if block is None or block.session is not session:  # the portal's, or a worker's: closed by its owner
            return _nothing_held
        block.inside += 1
        return lambda: self._leave(block)

    async def _leave(self, block: Block) -> None:
        block.inside -= 1
        if block.inside:
            return
        loop = block.session.loop
        del self._blocks[loop]  # first: a block that begins now has to open its own
        closing = loop.create_task(block.session.close(), name="tidemill closing")
        try:
            await asyncio.wait({closing})
        except asyncio.CancelledError:  # ours, and not that of those whose enqueues are being finished
            await asyncio.wait({closing})
            raise
        closing.result()


async def _nothing_held() -> None:
    pass
