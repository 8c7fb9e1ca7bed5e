"""How the versions of a schema are found."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemill.engine.migrations import Migration, Script, load_migrations


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An importable package with a schema of two scripts."""
    folder = tmp_path / "an_engine_with_a_schema"
    (folder / "schema/jobs").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "schema/tables.sql").write_text("tables")
    (folder / "schema/jobs/claim.sql").write_text("claim")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    sys.modules.pop(folder.name, None)


FIRST = Migration(1, 1, (Script("tables", "tables"), Script("jobs/claim", "claim")))


def test_version_1_is_the_schema_in_the_order_that_is_stated(package: Path) -> None:
    assert load_migrations(package.name, ["tables", "jobs/claim"]) == [FIRST]


def test_later_versions_are_numbered_files(package: Path) -> None:
    (package / "migrations").mkdir()
    (package / "migrations/0003_second.sql").write_text("-- oldest code: 2\nthree")
    (package / "migrations/0002_first.sql").write_text("-- oldest code: 1\ntwo")
    _, second, third = load_migrations(package.name, ["tables", "jobs/claim"])
    assert second == Migration(2, 1, (Script("0002_first.sql", "-- oldest code: 1\ntwo"),))
    assert (third.version, third.oldest_code) == (3, 2)


@pytest.mark.parametrize(
    "order", [["tables"], ["tables", "jobs/claim", "more"], ["tables", "tables", "jobs/claim"]]
)
def test_an_order_that_does_not_name_each_script_once_is_refused(package: Path, order: list[str]) -> None:
    with pytest.raises(ValueError, match="differ"):
        load_migrations(package.name, order)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("0003_x.sql", "-- oldest code: 1\n", "not numbered"),
        ("0002_x.sql", "SELECT 1", "does not begin with"),
    ],
)
def test_a_migration_that_does_not_fit_is_refused(package: Path, name: str, text: str, said: str) -> None:
    (package / "migrations").mkdir()
    (package / "migrations" / name).write_text(text)
    with pytest.raises(ValueError, match=said):
        load_migrations(package.name, ["tables", "jobs/claim"])
