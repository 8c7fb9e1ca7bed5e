"""What is said of options that do not exist: the nearest that does, and the list of all.

Python's own answer to an unknown keyword names neither.
"""

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import StructMeta

from tidemill.model.errors import BadInput
from tidemill.model.names import nearest


class OptionsMeta(StructMeta):
    """The metaclass of records that people write, such as `Retry(attempts=3)`. A call that does not fit the
    fields is `BadInput`. msgspec allows no `__init__`, and decoding does not come by here."""

    if not TYPE_CHECKING:  # a checker reads the fields, or `__init__` where the record has one

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            try:
                return super().__call__(*args, **kwargs)
            except TypeError:  # a signature is slow to make, and engines make limits from what they store
                check_options(cls.__name__, inspect.signature(cls), args, kwargs)
                raise


def check_options(
    where: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """`BadInput` if these arguments do not fit; `where` is the name that people know: `app.queue`."""
    named = [p.name for p in signature.parameters.values() if p.kind in _NAMED and p.name != "self"]
    for name in kwargs:
        if name not in named:
            raise unknown_option(where, name, named)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise BadInput(f"{where}: {error}; it takes {', '.join(named)}") from None


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def unknown_option(where: str, name: str, known: Iterable[str], more: str = "") -> BadInput:
    """The error for an option that does not exist."""
    names = list(known)
    hint = more or nearest(name, names)
    return BadInput(f"{where} has no option {name!r}{hint or ';'} options are {', '.join(names)}")
