"""Signatures that others read can be read on every Python.

Since 3.14 annotations are evaluated late, in the scope of their class: there a method called `list` hides the
type of that name from all annotations of the class.
"""

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import tidemill
from tidemill.engine import protocol


def functions(module: ModuleType) -> Iterator[Any]:
    """The functions and methods that a module shows."""
    for thing in vars(module).values():
        if str(getattr(thing, "__module__", "")).startswith("tidemill"):
            parts = vars(thing).values() if inspect.isclass(thing) else [thing]
            yield from filter(inspect.isfunction, parts)


def test_those_of_the_public_names_and_of_the_protocol() -> None:
    unreadable = []
    for function in {*functions(tidemill), *functions(protocol)}:
        try:
            inspect.signature(function)
        except Exception as error:
            unreadable.append(f"{function.__module__}.{function.__qualname__}: {error}")
    assert unreadable == []
