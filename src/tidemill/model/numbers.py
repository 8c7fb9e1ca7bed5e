"""Whole numbers that people write. Python counts `True` among them, and a comparison with text fails far from
the line that is wrong."""

from tidemill.model.errors import BadInput


def check_whole(what: str, value: object) -> int:
    """The same number, or `BadInput`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{what} is a whole number, not {type(value).__name__} ({value!r})")
    return value
