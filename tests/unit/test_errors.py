"""The tree in the docstring is the tree of classes."""

import inspect
import re

import pytest

from tidemill.model import errors
from tidemill.model.errors import BadInput, EngineFull, TidemillError

LINE = re.compile(
    r"    (?P<indent>[| ]*)(\+-- )?(?P<name>[A-Z]\w+)(?: \((?P<also>\w+)\))?(?:  +(?P<says>.*))?"
)


def drawn() -> list[tuple[str, str | None, str | None]]:
    """(class, the one above it, another class it also is) in the order of the drawing."""
    tree, path = [], list[str]()
    for line in (errors.__doc__ or "").splitlines():
        found = LINE.fullmatch(line)
        if found is None:
            continue
        depth = 0 if "+--" not in line else 1 + len(found["indent"]) // 4
        path[depth:] = [found["name"]]
        tree.append((found["name"], path[depth - 1] if depth else None, found["also"]))
    return tree


def real() -> list[tuple[str, str | None, str | None]]:
    """The same of the classes, in the order in which they are written."""
    tree = []
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and kind.__module__ == errors.__name__:
            ours = [up.__name__ for up in kind.__bases__ if issubclass(up, TidemillError)]
            others = [up.__name__ for up in kind.__bases__ if not issubclass(up, TidemillError)]
            root = kind is TidemillError
            tree.append((name, None if root else ours[0], None if root or not others else others[0]))
            assert len(ours) <= 1
    return tree


def test_the_drawing_shows_every_class_in_its_place() -> None:
    assert drawn() == real()
    assert len(drawn()) > 15


@pytest.mark.parametrize(("name", "_up", "_also"), real())
def test_every_class_says_what_it_means(name: str, _up: str | None, _also: str | None) -> None:
    assert (getattr(errors, name).__doc__ or "").endswith(".") or ":" in getattr(errors, name).__doc__


def test_bad_input_is_a_value_error_too() -> None:
    with pytest.raises(ValueError, match="no"):
        raise BadInput("no")


def test_what_may_help_to_repeat_is_caught_by_one_name() -> None:
    with pytest.raises(errors.EngineUnavailable):
        raise EngineFull("no space")
