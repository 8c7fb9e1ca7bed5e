"""From a URL to an engine, where the engine's driver is not installed."""

import subprocess
import sys

import pytest

from tidemill.engine.registry import connect
from tidemill.model.errors import BadUrl

WITHOUT = """
import asyncio
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from tidemill.engine.registry import connect
from tidemill.model.errors import BadUrl
try:
    asyncio.run(connect(sys.argv[2]))
except BadUrl as error:
    print(error)
"""
"""A program of its own: what was imported once would be found."""


@pytest.mark.parametrize(
    ("driver", "url", "extra"),
    [
        ("redis", "redis://:s3cret@h/0", "redis"),
        ("redis", "rediss://h/0", "redis"),
        ("asyncpg", "postgresql://u:s3cret@h/db", "postgres"),
        ("asyncpg", "postgresql+asyncpg://u:s3cret@h/db", "postgres"),
        ("asyncpg", "postgresql+psycopg://u:s3cret@h/db", "postgres"),
        ("asyncpg", "postgres+psycopg2://u:s3cret@h/db", "postgres"),
    ],
)
def test_a_missing_driver_is_named_with_its_extra(driver: str, url: str, extra: str) -> None:
    command = (sys.executable, "-c", WITHOUT, driver, url)
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"({driver}" in said
    assert f"pip install -e '.[{extra}]'" in said
    assert "s3cret" not in said


async def test_another_driver_is_no_scheme() -> None:
    with pytest.raises(BadUrl, match=r"'postgresql\+pg8000' is not an engine's URL scheme"):
        await connect("postgresql+pg8000://h/db")
