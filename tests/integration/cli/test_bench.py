"""`tidemill bench` runs and reports. How fast is not asserted: that is for people to read."""

from pathlib import Path

import pytest

from tests.integration.cli.conftest import Run
from tidemill.cli.bench.figures import figure, table


def test_everything_is_measured(execute: Run, tmp_path: Path) -> None:
    ran = execute(
        "bench", "--url", f"sqlite:///{tmp_path}/bench.db", "--jobs", "200", "--turns", "1", "--json"
    )
    assert ran.code == 0, ran
    report = ran.object
    assert report["jobs"] == 200
    assert {found["measure"] for found in report["figures"]} == {
        "enqueue",
        "no-op jobs",
        "pick-up",
        "due times",
        "idle",
        "memory",
        "import",
    }
    cases = {found["case"] for found in report["figures"]}
    assert {"async, 1 x 200 slots", "def, 1 x 200 slots", "async, 1 x 10 slots", "in bulk"} <= cases
    assert all(found["value"] > 0 for found in report["figures"] if found["unit"] in ("jobs/s", "ms", "MB"))
    # what was measured is cleared away
    assert execute("jobs", "ls", "--url", f"sqlite:///{tmp_path}/bench.db", "--json").objects == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--url", "nowhere://"), "not an engine's URL scheme"),
        (("--url", "sqlite:////no/such/folder/x.db"), "does not exist"),
        (("--jobs", "1"), "100<=x<=1000000"),
        (("--processes", "0"), "1<=x<=64"),
    ],
)
def test_what_cannot_be_measured_is_one_line(execute: Run, options: tuple[str, ...], says: str) -> None:
    ran = execute("bench", *options)
    assert ran.code == 2
    assert says in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_table_groups_what_belongs_together() -> None:
    figures = [figure("enqueue", "one", "jobs/s", [3.0, 1.0, 2.0]), figure("enqueue", "two", "jobs/s", [5.0])]
    assert figures[0].value == 2.0
    assert table("title", figures).row_count == 2
