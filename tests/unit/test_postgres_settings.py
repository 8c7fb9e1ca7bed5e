"""Each PostgreSQL function that is called from outside has settings of its own: those of a session are lost
behind PgBouncer."""

import re
from pathlib import Path

from tidemill.engines import postgres

ROOT = Path(postgres.__file__).parent
WITHOUT = {"instant_v1", "naming_v1"}
"""They name nothing that a search path would find."""


def test_each_function_that_is_called_has_its_settings() -> None:
    python = "\n".join(file.read_text("utf-8") for file in ROOT.rglob("*.py"))
    sql = "\n".join(file.read_text("utf-8") for file in (ROOT / "sql").glob("*.sql"))
    called = set(re.findall(r'"([a-z_]+_v\d)"|\{+schema\}+\.([a-z_]+_v\d)', python))
    names = {name for pair in called for name in pair if name} | set(re.findall(r"\b([a-z_]+_v\d)\(", sql))
    listed = set(re.findall(r"'([a-z_]+_v\d)'", (ROOT / "schema" / "settings.sql").read_text("utf-8")))
    assert len(names) > 30
    assert names - listed == WITHOUT
