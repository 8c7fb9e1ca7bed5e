"""A script in a savepoint: all of it is done or nothing, inside a transaction of the user's."""

from typing import TypeVar

from tidemill.engine.protocol import Script
from tidemill.model.view import Statement

T = TypeVar("T")


def whole(script: Script[T], none: tuple[()] | dict[str, object]) -> Script[T]:
    """Undo what the script did if it fails, and leave the rest of the transaction as it is. `none`: no
    parameters, as the engine's statements write them."""
    yield Statement("SAVEPOINT tidemill", none)
    try:
        answer = yield from script
        yield Statement("RELEASE tidemill", none)
    except GeneratorExit:
        raise
    except BaseException:
        yield Statement("ROLLBACK TO tidemill", none)
        yield Statement("RELEASE tidemill", none)
        raise
    return answer
