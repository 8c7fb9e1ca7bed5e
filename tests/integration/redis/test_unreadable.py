"""A task in the catalogue that cannot be read is not in the way of a death."""

import pytest

from tests.integration.redis.conftest import Command
from tests.integration.unreadable import ENTRIES, a_job_dies
from tidemill.engines.redis.engine import RedisEngine
from tidemill.testing.contract.fixtures import Claimant, Clock


@pytest.mark.parametrize("entry", ENTRIES)
async def test_a_handler_whose_entry_cannot_be_read(
    engine: RedisEngine, claimant: Claimant, clock: Clock, command: Command, entry: bytes
) -> None:
    command("HSET", f"{engine.store.url.prefix}task", "bury", entry)
    await a_job_dies(engine, clock, claimant)
