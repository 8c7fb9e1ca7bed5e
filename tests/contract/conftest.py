"""The contract suite on every engine of this project, in every mode."""

import sqlite3
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from penstock.engine.protocol import Engine
from penstock.testing.contract.fixtures import (
    UserConnection,
    claimant,
    clock,
    connect,
    engine,
)

__all__ = ["claimant", "clock", "connect", "engine"]

MODES = ("sqlite-file", "sqlite-memory")


@pytest.fixture(params=MODES)
def engine_mode(request: pytest.FixtureRequest) -> str:
    """Which engine, and how it runs."""
    mode: str = request.param
    return mode


@pytest.fixture
def fresh_engine_url(engine_mode: str, tmp_path: Path) -> Callable[[], str]:
    """Names a new, empty place in that mode each time."""
    names = (f"penstock-{number}" for number in count())
    if engine_mode == "sqlite-memory":
        return lambda: f"sqlite://?name={uuid4().hex}"
    return lambda: f"sqlite:///{tmp_path}/{next(names)}.db?durability=normal"


@pytest.fixture
def engine_url(fresh_engine_url: Callable[[], str]) -> str:
    """The place of one test."""
    return fresh_engine_url()


@pytest.fixture
def user_connection(engine_mode: str, engine_url: str, engine: Engine) -> Iterator[UserConnection | None]:
    """A plain connection to the engine's file, in a transaction of its own."""
    if engine_mode != "sqlite-file":
        yield None
        return
    connection = sqlite3.connect(urlsplit(engine_url).path, isolation_level=None)
    connection.execute("BEGIN")
    yield connection
    connection.close()
