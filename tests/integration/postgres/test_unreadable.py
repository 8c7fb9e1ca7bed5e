"""A task in the catalogue that cannot be read is not in the way of a death."""

import pytest

from tests.integration.postgres.conftest import Plain
from tests.integration.unreadable import ENTRIES, a_job_dies
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.testing.contract.fixtures import Claimant, Clock


@pytest.mark.parametrize("entry", ENTRIES)
async def test_a_handler_whose_entry_cannot_be_read(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, plain: Plain, entry: bytes
) -> None:
    await (await plain()).execute("INSERT INTO tidemill.task (name, entry) VALUES ('bury', $1)", entry)
    await a_job_dies(engine, clock, claimant)
