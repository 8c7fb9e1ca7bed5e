"""What all adapters have in common: playing a script, and what a database's errors mean here."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, TypeVar

from tidemill.engine.protocol import Script
from tidemill.model.errors import NoTransaction, WrongPlace
from tidemill.model.view import Statement

T = TypeVar("T")
Rows = Sequence[Sequence[Any]]
Advance = Callable[[], Statement]
Dialect = Literal["postgresql", "sqlite"]

_ELSEWHERE = ("PN004", "3F000", "42883", "42P01")
"""Another database or namespace, and: no such schema, function, table."""


class Adapter(ABC):
    """A blocking connection."""

    dialect: Dialect

    @abstractmethod
    def check(self) -> None:
        """`NoTransaction` if the next statement would stand at once."""

    @abstractmethod
    def execute(self, statement: Statement) -> Rows:
        """Run one statement; its rows, each to be read by position."""

    def play(self, script: Script[T]) -> T:
        """Run a script to its end; its answer."""
        self.check()
        advance: Advance = partial(next, script)
        while True:
            try:
                statement = advance()
            except StopIteration as end:
                answer: T = end.value
                return answer
            try:
                with explained(statement, self.dialect):
                    rows = self.execute(statement)
            except BaseException as error:  # the script may have something to undo; then it raises this
                advance = partial(script.throw, error)
            else:
                advance = partial(script.send, rows)


class AsyncAdapter(ABC):
    """A connection of the running loop."""

    @abstractmethod
    async def play(self, script: Script[T]) -> T:
        """See `Adapter.play`."""


class StatementAdapter(AsyncAdapter):
    """One that runs single statements."""

    dialect: Dialect

    @abstractmethod
    async def check(self) -> None:
        """See `Adapter.check`."""

    @abstractmethod
    async def execute(self, statement: Statement) -> Rows:
        """See `Adapter.execute`."""

    async def play(self, script: Script[T]) -> T:
        await self.check()
        advance: Advance = partial(next, script)
        while True:
            try:
                statement = advance()
            except StopIteration as end:
                answer: T = end.value
                return answer
            try:
                with explained(statement, self.dialect):
                    rows = await self.execute(statement)
            except BaseException as error:  # a cancellation too: see above
                advance = partial(script.throw, error)
            else:
                advance = partial(script.send, rows)


def at_once(what: str, how: str) -> NoTransaction:
    """The refusal of a connection on which everything stands at once."""
    return NoTransaction(
        f"no transaction is open on this {what}, and what is written on it stands at once: {how}"
    )


@contextmanager
def explained(statement: Statement, dialect: Dialect) -> Iterator[None]:
    """Say so where a connection leads elsewhere. Other errors of the database are the caller's to see."""
    wanted: Dialect = "sqlite" if isinstance(statement.parameters, Mapping) else "postgresql"
    if wanted != dialect:
        raise WrongPlace(
            f"this connection is to {_NAMES[dialect]}, and the app's jobs are in {_NAMES[wanted]}"
        )
    try:
        yield
    except Exception as error:
        if _sqlstate(error) in _ELSEWHERE:
            says = getattr(error, "orig", None) or error  # SQLAlchemy's own text has the parameters in it
            raise WrongPlace(
                "this connection leads to another database than the app's, or the namespace is another one "
                f"there: pass a connection to the database of the app's URL ({says})"
            ) from error
        raise


_NAMES: dict[Dialect, str] = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}


def _sqlstate(error: BaseException | None) -> str | None:
    """PostgreSQL's code, wherever a driver or a framework around it has put it."""
    for _ in range(4):
        if error is None:
            return None
        state = getattr(error, "sqlstate", None)
        if isinstance(state, str):
            return state
        error = getattr(error, "orig", None) or error.__cause__
    return None
