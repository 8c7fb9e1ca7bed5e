"""Interrupts as the handler of a signal raises them, at a chosen moment."""

import inspect
import sys
from collections.abc import Callable
from types import FrameType


class Interrupted(BaseException):
    """As KeyboardInterrupt."""


def interrupted_at(moment: int, call: Callable[[], object]) -> bool:
    """Make a call, and raise at the n-th moment at which the handler of a signal could. Whether it came."""
    return _at(moment, call, _raise)


def disturbed_at(moment: int, call: Callable[[], object], handler: Callable[[], object]) -> bool:
    """Make a call, and call a handler at the n-th moment at which one could be. Whether it came."""
    return _at(moment, call, handler)


def _raise() -> None:
    raise Interrupted


def _at(moment: int, call: Callable[[], object], handler: Callable[[], object]) -> bool:
    passed = 0

    def pass_by(frame: FrameType, event: str, _: object) -> None:
        nonlocal passed
        if "tidemill" not in frame.f_globals["__name__"] or frame.f_code.co_flags & inspect.CO_GENERATOR:
            return  # what is raised where the garbage collector calls back or ends a generator is lost
        passed += event in ("call", "c_return", "c_exception")
        if passed == moment:
            sys.setprofile(None)
            handler()

    sys.setprofile(pass_by)
    try:
        call()
    except Interrupted:
        pass
    finally:
        sys.setprofile(None)
    return passed >= moment
