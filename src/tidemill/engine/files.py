"""The files that come with a package: SQL, Lua."""

from importlib import import_module
from pathlib import Path


def folder_of(package: str) -> Path:
    """Where a package lies. (`importlib.resources` says it too, and takes each process longer to import than
    to read all of our files.)"""
    file = import_module(package).__file__
    assert file is not None, f"{package} is no package with an __init__.py"
    return Path(file).parent
