"""Scripts of the `transactions` facet, played on a connection of the user's."""

from typing import TYPE_CHECKING, Any, TypeVar

from tidemill.engine.protocol import Script

if TYPE_CHECKING:
    import asyncpg

T = TypeVar("T")


async def play(user: "asyncpg.Connection[Any]", script: Script[T]) -> T:
    """The script's statements; what it returns."""
    rows: Any = None
    while True:
        try:
            statement = script.send(rows)
        except StopIteration as end:
            result: T = end.value
            return result
        rows = await user.fetch(statement.sql, *statement.parameters)
