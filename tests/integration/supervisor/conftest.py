"""Real worker groups on a real engine. Whatever a test starts is gone after it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.engines import SHARED, fresh_url
from tests.integration.supervisor.groups import SUPERVISES, Group, a_config
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect


@pytest.fixture(params=SHARED)
def engine_mode(request: pytest.FixtureRequest) -> str:
    mode: str = request.param
    return mode


@pytest.fixture
def engine_url(engine_mode: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    yield from fresh_url(engine_mode, tmp_path, request)


@pytest.fixture
async def engine(engine_url: str) -> AsyncIterator[Engine]:
    engine = await connect(engine_url)
    yield engine
    await engine.close()


class StartGroup(Protocol):
    def __call__(
        self,
        name: str = "one",
        *,
        environment: dict[str, str] | None = None,
        program: str = SUPERVISES,
        **config: Any,
    ) -> Group: ...


@pytest.fixture
def group(engine_url: str, tmp_path: Path) -> Iterator[StartGroup]:
    """Starts worker groups."""
    yield from start_groups(engine_url, tmp_path)


def start_groups(url: str, folder: Path) -> Iterator[StartGroup]:
    """The body of the fixture."""
    started: list[Group] = []

    def start(
        name: str = "one",
        *,
        environment: dict[str, str] | None = None,
        program: str = SUPERVISES,
        **config: Any,
    ) -> Group:
        one = Group(a_config(url, **config), folder, name, environment or {}, program)
        started.append(one)
        return one

    yield start
    for one in started:
        one.close()
    for one in started:
        print(f"--- {one.name}", one.log, sep="\n")
