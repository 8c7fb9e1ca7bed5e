"""Replacing parts of the programs that a run consists of."""


def swap(target: object, name: str, new: object) -> None:
    """Put something else in a known place."""
    assert hasattr(target, name), f"{target} has no {name} any more: renew this"
    setattr(target, name, new)
