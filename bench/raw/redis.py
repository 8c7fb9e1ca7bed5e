"""The frozen loop on Redis: enqueue, claim, settle, and nothing else. The ceiling.

Honest means: one script per step, an id that makes enqueue idempotent, order by (priority, seq), what a
worker holds in a hash of its own with all that is needed to put it back, a fence on every settle. Left out is
everything an engine adds: lanes, gates, members, promotion, expiry, times, counts, signals.

Bodies are packed in one hash and results in another, order is one zset: the layout that was fastest when
several were tried (a hash per job made half of it). Claims and settles go over two connections, so that they
overlap.
"""

import asyncio
import hashlib
import itertools
from collections.abc import Sequence
from typing import Any

from hiredis import pack_command
from redis.asyncio.connection import Connection, parse_url

PRIORITY = 5
RESULT = b"null"
STEP = 1 << 46
"""Between the scores of two priorities."""

_ENQUEUE = b"""
local known = {}
for n = 2, #ARGV, 2 do known[#known + 1] = ARGV[n] end
known = redis.call('HMGET', 'raw:job', unpack(known))
local count, blobs, places = 0, {}, {}
for n = 2, #ARGV, 2 do
    if not known[n / 2] then
        count = count + 1
        blobs[2 * count - 1], blobs[2 * count], places[2 * count] = ARGV[n], ARGV[n + 1], ARGV[n]
    end
end
if count == 0 then return 0 end
local place = tonumber(ARGV[1]) + redis.call('INCRBY', 'raw:seq', count) - count
for n = 1, count do places[2 * n - 1] = place + n end
redis.call('HSET', 'raw:job', unpack(blobs))
redis.call('ZADD', 'raw:ready', unpack(places))
return count
"""
_CLAIM = b"""
local popped = redis.call('ZPOPMIN', 'raw:ready', ARGV[2])
local count = #popped / 2
if count == 0 then return {0, {}, {}} end
local token = redis.call('INCRBY', 'raw:token', count) - count
local ids, held = {}, {}
for n = 1, count do
    ids[n] = popped[2 * n - 1]
    held[2 * n - 1], held[2 * n] = ids[n], (token + n) .. ' ' .. popped[2 * n]
end
redis.call('HSET', 'raw:run:' .. ARGV[1], unpack(held))
return {token, ids, redis.call('HMGET', 'raw:job', unpack(ids))}
"""
_SETTLE = b"""
local key, ids = 'raw:run:' .. ARGV[1], {}
for n = 2, #ARGV, 3 do ids[#ids + 1] = ARGV[n] end
local held, gone, done = redis.call('HMGET', key, unpack(ids)), {}, {}
for n, id in ipairs(ids) do
    local token = ARGV[3 * n]
    if held[n] and held[n]:sub(1, #token + 1) == token .. ' ' then
        gone[#gone + 1], done[#done + 1], done[#done + 2] = id, id, ARGV[3 * n + 1]
    end
end
if #gone > 0 then
    redis.call('HDEL', key, unpack(gone))
    redis.call('HSET', 'raw:done', unpack(done))
end
return #gone
"""

Held = list[tuple[bytes, int]]


class Loop:
    """One process: a connection for claims, one for settles, one for enqueues."""

    def __init__(self, connections: list[Connection], worker: bytes) -> None:
        self._claims, self._settles, self._enqueues = connections
        self._worker = worker
        self._enqueue, self._claim, self._settle = (
            hashlib.sha1(text, usedforsecurity=False).hexdigest() for text in (_ENQUEUE, _CLAIM, _SETTLE)
        )

    @classmethod
    async def open(cls, url: str) -> "Loop":
        connections = [Connection(**parse_url(url)) for _ in range(3)]
        for connection in connections:
            await connection.connect()  # type: ignore[no-untyped-call]
        for text in (_ENQUEUE, _CLAIM, _SETTLE):
            await _ask(connections[0], "SCRIPT", "LOAD", text)
        worker = await _ask(connections[0], "INCR", "raw:worker")
        return cls(connections, b"%d" % worker)

    async def enqueue(self, jobs: Sequence[tuple[bytes, bytes]]) -> None:
        """Store jobs (id, body) in one step."""
        flat = itertools.chain.from_iterable(jobs)
        stored = await _ask(self._enqueues, "EVALSHA", self._enqueue, 0, PRIORITY * STEP, *flat)
        if stored != len(jobs):
            raise RuntimeError(f"only {stored} of {len(jobs)} jobs were stored")

    async def drain(self, batch: int) -> int:
        """Claim the next batch while the last one is settled."""
        settled = 0
        held = await self._take(batch)
        while held:
            settling = asyncio.ensure_future(self._end(held))
            held = await self._take(batch)
            settled += await settling
        return settled

    async def close(self) -> None:
        for connection in (self._claims, self._settles, self._enqueues):
            await connection.disconnect()

    async def _take(self, most: int) -> Held:
        token, ids, bodies = await _ask(self._claims, "EVALSHA", self._claim, 0, self._worker, most)
        if len(bodies) != len(ids):
            raise RuntimeError("a job without its body")
        return list(zip(ids, range(token + 1, token + len(ids) + 1), strict=True))

    async def _end(self, held: Held) -> int:
        items = itertools.chain.from_iterable((id_, token, RESULT) for id_, token in held)
        count: int = await _ask(self._settles, "EVALSHA", self._settle, 0, self._worker, *items)
        if count != len(held):
            raise RuntimeError(f"only {count} of {len(held)} settlements applied")
        return count


async def _ask(connection: Connection, *parts: Any) -> Any:
    await connection.send_packed_command(pack_command(parts))
    return await connection.read_response()
