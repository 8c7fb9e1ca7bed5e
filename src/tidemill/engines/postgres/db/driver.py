"""The driver's connection, except that the server's own array types are learnt once in a process.

asyncpg asks on every new connection, at the first array that it meets, how that type is built: three round
trips more, one of them with a query that takes the server longer to plan than most of ours take in all. Types
of the system catalogue are the same on every server.
"""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import asyncpg

SYSTEM_TYPES = range(10_000)
"""PostgreSQL gives these numbers by hand, for ever; the others are each database's own."""

_learnt: "dict[frozenset[int], Any]" = {}
_NOTHING_WAS_ASKED = SimpleNamespace(name="none")
"""In place of the statement that asked: an unnamed one would have pushed out the one being prepared."""


class DriverConnection(asyncpg.Connection):
    """Opened by `asyncpg.connect(connection_class=...)`."""

    async def _introspect_types(self, typeoids: Iterable[int], timeout: float | None) -> Any:
        asked = frozenset(typeoids)
        if asked in _learnt:
            return _learnt[asked], _NOTHING_WAS_ASKED
        answer = await super()._introspect_types(typeoids, timeout)  # type: ignore[misc]  # its own, untyped
        if all(number in SYSTEM_TYPES for number in asked):
            _learnt[asked] = answer[0]
        return answer
