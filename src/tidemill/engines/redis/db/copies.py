"""`durability=replicated`: a call that writes counts when replicas have it too.

WAIT is sent right behind the script, in the same trip: it answers how many replicas have everything that this
connection wrote. So a batch of a thousand merged enqueues waits once.

A call may find that an earlier call was applied, and then it writes nothing. The earlier call may have come
over another connection, and newer servers would not wait for its writes. So a small write of our own stands
between the script and WAIT, in the same trip. Everything that the script has found is older than that write.

Too few replicas in time raise `EngineUnavailable`: the call is applied on this server, and lost if this
server is lost now. A caller who repeats the call until it succeeds knows that it is safe.

Some calls do not wait, because a failover undoes nothing that does not happen again by itself: heartbeats,
claims (a job whose claim was lost is ready again), due jobs that became ready, retention, sweeps, watches.
"""

from collections.abc import Sequence
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ResponseError

from tidemill.engines.redis.db.scripts import LuaScript
from tidemill.engines.redis.url import RedisUrl
from tidemill.model.errors import EngineUnavailable

NOT_WAITED_FOR = frozenset({"heartbeat", "claim", "promote", "prune", "reclaim", "watch"})

Argument = bytes | str | int


class TooFewReplicas(EngineUnavailable):
    """Applied, and not copied in time."""


class Copies:
    """Waits for the replicas of one connection."""

    def __init__(self, url: RedisUrl, mark: LuaScript) -> None:
        self._url = url
        self._mark = mark

    async def request(
        self, connection: AbstractConnection, parts: Sequence[Argument], patience_s: float
    ) -> Any:
        """The answer of a command once enough replicas have what it wrote."""
        url = self._url
        wait_ms = max(1, round(min(url.replica_timeout, patience_s / 2) * 1_000))
        mark, wait = ("EVAL", self._mark.text, 1, url.prefix), ("WAIT", url.replicas, wait_ms)
        commands = [tuple(parts), mark, wait]
        await connection.send_packed_command(connection.pack_commands(commands), check_health=False)
        answer, marked, copies = [await _answer(connection) for _ in commands]
        if isinstance(answer, ResponseError):
            raise answer
        for each in (marked, copies):
            if isinstance(each, ResponseError):
                raise TooFewReplicas(f"{url} does not say whether replicas have it: {str(each)[:200]}")
        if copies < url.replicas:
            raise TooFewReplicas(
                f"{url} has it, but of its replicas {copies} instead of {url.replicas} within "
                f"{wait_ms / 1_000:g} s: repeat the call, and check the replicas; until then it would "
                "be lost with that server"
            )
        return answer


async def _answer(connection: AbstractConnection) -> Any:
    """The next answer, an error of the server included: others follow it."""
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error
