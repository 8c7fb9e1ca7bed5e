"""The frozen loop on PostgreSQL: enqueue, claim, settle, and nothing else. The ceiling.

Honest means: one transaction per step with the server's stock durability, an id that makes enqueue
idempotent, order by (queue, priority, seq), SKIP LOCKED, a cursor, a fence from a sequence on every settle.
Left out is everything an engine adds: lanes, gates, members, promotion, expiry, times, counts, signals.

The claim is the shape that was fastest when several were tried: rows are found by an index from the cursor on
and updated by their place. Claims and settles go over two connections, so that they overlap (50,000 against
35,000 jobs a second over one). Sessions run with jit off and generic plans, as the engine's functions do.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg

QUEUE = "default"
PRIORITIES = range(11)
PRIORITY = 5
RESULT = b"null"

_SCHEMA = """
CREATE SEQUENCE IF NOT EXISTS raw_token;
CREATE TABLE IF NOT EXISTS raw_job (
    id       bytea PRIMARY KEY,
    seq      bigint GENERATED ALWAYS AS IDENTITY,
    token    bigint,
    priority smallint NOT NULL,
    state    smallint NOT NULL,
    queue    text NOT NULL,
    body     bytea NOT NULL,
    result   bytea
);
CREATE INDEX IF NOT EXISTS raw_ready ON raw_job (queue, priority, seq) WHERE state = 1;
"""
_ENQUEUE = """
INSERT INTO raw_job (id, queue, priority, state, body)
SELECT id, $2, $3, 1, body FROM unnest($1::bytea[], $4::bytea[]) AS new (id, body) ON CONFLICT (id) DO NOTHING
"""
_CLAIM = """
UPDATE raw_job SET state = 2, token = nextval('raw_token') WHERE ctid = ANY (ARRAY(
    SELECT found.at FROM unnest($2::smallint[], $3::bigint[]) AS lane (priority, seq)
    CROSS JOIN LATERAL (
        SELECT ctid AS at FROM raw_job
        WHERE queue = $1 AND state = 1 AND raw_job.priority = lane.priority AND raw_job.seq >= lane.seq
        ORDER BY raw_job.seq LIMIT $4 FOR UPDATE SKIP LOCKED
    ) AS found LIMIT $4
))
RETURNING id, token, seq, priority, body
"""
# Fenced by id and token alone; the token is cleared, so that a repeat finds nothing.
_SETTLE = """
UPDATE raw_job SET state = 3, result = done.result, token = NULL
FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) AS done (id, token, result)
WHERE raw_job.id = done.id AND raw_job.token = done.token
"""

Held = list[tuple[bytes, int]]


class Loop:
    """One process: a connection for claims, one for settles, one for enqueues."""

    def __init__(self, connections: "list[asyncpg.Connection[Any]]") -> None:
        self._claims, self._settles, self._enqueues = connections
        self._cursors = [0] * len(PRIORITIES)

    @classmethod
    async def open(cls, url: str) -> "Loop":
        settings = {"jit": "off", "plan_cache_mode": "force_generic_plan"}
        connections: list[asyncpg.Connection[Any]] = [
            await asyncpg.connect(url, server_settings=settings) for _ in range(3)
        ]
        await connections[0].execute(_SCHEMA)
        return cls(connections)

    async def enqueue(self, jobs: Sequence[tuple[bytes, bytes]]) -> None:
        """Store jobs (id, body) in one transaction."""
        ids, bodies = [id_ for id_, _ in jobs], [body for _, body in jobs]
        await self._enqueues.execute(_ENQUEUE, ids, QUEUE, PRIORITY, bodies)

    async def drain(self, batch: int) -> int:
        """Claim the next batch while the last one is settled."""
        settled = 0
        held = await self._claim(batch)
        while held:
            settling = asyncio.ensure_future(self._settle(held))
            held = await self._claim(batch)
            settled += await settling
        return settled

    async def close(self) -> None:
        for connection in (self._claims, self._settles, self._enqueues):
            await connection.close()

    async def _claim(self, most: int) -> Held:
        rows = await self._claims.fetch(_CLAIM, QUEUE, list(PRIORITIES), self._cursors, most)
        rows.sort(key=lambda row: (row[3], row[2]))  # RETURNING promises no order
        for row in rows:
            self._cursors[row[3]] = max(self._cursors[row[3]], row[2] + 1)
        return [(row[0], row[1]) for row in rows]

    async def _settle(self, held: Held) -> int:
        ids, tokens = [id_ for id_, _ in held], [token for _, token in held]
        status = await self._settles.execute(_SETTLE, ids, tokens, [RESULT] * len(held))
        count = int(status.split()[-1])
        if count != len(held):
            raise RuntimeError(f"only {count} of {len(held)} settlements applied")
        return count
