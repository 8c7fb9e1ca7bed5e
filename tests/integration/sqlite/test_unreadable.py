"""A task in the catalogue that cannot be read is not in the way of a death."""

from pathlib import Path

import pytest

from tests.integration.sqlite.plain_file import file_url, plain
from tests.integration.unreadable import ENTRIES, a_job_dies
from tidemill.engine.registry import connect
from tidemill.testing.contract.fixtures import Clock, a_claimant


@pytest.mark.parametrize("entry", ENTRIES)
async def test_a_handler_whose_entry_cannot_be_read(tmp_path: Path, clock: Clock, entry: bytes) -> None:
    engine = await connect(file_url(tmp_path / "p.db"))
    claimant = await a_claimant(engine, clock)
    with plain(tmp_path / "p.db") as db:
        db.execute("INSERT INTO task (name, entry) VALUES ('bury', ?)", (entry,))
        db.commit()
    await a_job_dies(engine, clock, claimant)
    await engine.close()
