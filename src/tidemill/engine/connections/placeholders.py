"""PostgreSQL's own placeholders, `$1`, for drivers that want `%s`."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tidemill.model.view import Statement

_MARK = re.compile(r"\$(\d+)")


def formatted(statement: Statement) -> tuple[str, tuple[Any, ...]]:
    """The statement with `%s`, and its parameters in the order in which those stand."""
    sql, order = _formatted(statement.sql)
    parameters = positional(statement)
    return sql, tuple(parameters[position] for position in order)


def positional(statement: Statement) -> Sequence[Any]:
    """The parameters of a statement with numbered placeholders."""
    assert isinstance(statement.parameters, tuple)
    return statement.parameters


@lru_cache(100)
def _formatted(sql: str) -> tuple[str, tuple[int, ...]]:
    order = tuple(int(number) - 1 for number in _MARK.findall(sql))
    return _MARK.sub("%s", sql.replace("%", "%%")), order
