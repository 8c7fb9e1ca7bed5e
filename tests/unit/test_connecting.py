"""Connects that outlast the call that began them."""

import asyncio

import pytest

from tidemill.engine.shared.calls.connecting import Connecting, StillConnecting

SOON_S = 0.01


class Server:
    """Connects are answered by the test."""

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[str]] = []
        self.dropped: list[str] = []
        self.connecting = Connecting(self._connect, self._drop)

    async def _connect(self) -> str:
        self.asked.append(asyncio.get_running_loop().create_future())
        return await self.asked[-1]

    async def _drop(self, connection: str) -> None:
        self.dropped.append(connection)

    async def begun(self, count: int) -> "asyncio.Task[str]":
        """A call with time enough, whose connect is the one with this number."""
        call = asyncio.ensure_future(self.connecting.within(60))
        while len(self.asked) < count:  # noqa: ASYNC110  (a turn of the loop or two)
            await asyncio.sleep(0)
        return call


@pytest.fixture
async def server() -> Server:
    """One that has left a first call without an answer."""
    server = Server()
    with pytest.raises(StillConnecting):
        await server.connecting.within(SOON_S)
    return server


async def test_what_came_meanwhile_is_taken(server: Server) -> None:
    server.asked[0].set_result("late")
    assert await server.connecting.within(60) == "late"
    assert server.dropped == []


async def test_the_first_of_two_is_taken_and_the_other_ended(server: Server) -> None:
    call = await server.begun(2)
    server.asked[1].set_result("own")
    assert await call == "own"
    assert server.asked[0].cancelled()
    call = await server.begun(3)
    server.asked[2].set_result("next")
    assert await call == "next"


async def test_the_oldest_goes_on_and_no_other(server: Server) -> None:
    for count in range(2, 5):
        with pytest.raises(StillConnecting):
            await server.connecting.within(SOON_S)
        assert [each.cancelled() for each in server.asked] == [False, *[True] * (count - 1)]
    server.asked[0].set_result("late")
    assert await server.connecting.within(60) == "late"


async def test_both_come_and_one_is_dropped(server: Server) -> None:
    call = await server.begun(2)
    for number, future in enumerate(server.asked):
        future.set_result(str(number))
    assert await call == "0"
    assert server.dropped == ["1"]


async def test_a_failure_of_its_own_is_told_and_the_older_goes_on(server: Server) -> None:
    call = await server.begun(2)
    server.asked[1].set_exception(OSError("refused"))
    with pytest.raises(OSError, match="refused"):
        await call
    server.asked[0].set_result("late")
    assert await server.connecting.within(60) == "late"


async def test_a_failure_of_the_older_is_nothing_to_a_new_call(server: Server) -> None:
    server.asked[0].set_exception(OSError("refused"))
    call = await server.begun(2)
    server.asked[1].set_result("own")
    assert await call == "own"


async def test_close_ends_what_goes_on(server: Server) -> None:
    await server.connecting.close()
    assert server.asked[0].cancelled()
    with pytest.raises(StillConnecting):
        await server.connecting.within(SOON_S)
    server.asked[1].set_result("late")
    await asyncio.sleep(0)
    await server.connecting.close()
    assert server.dropped == ["late"]


async def test_a_caller_that_is_cancelled_leaves_nothing(server: Server) -> None:
    call = await server.begun(2)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert all(each.cancelled() for each in server.asked)
