"""Schedules among real processes: published by workers, fired by whoever is elected, whoever dies."""

from pathlib import Path

import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.processes import until
from tidemill.engine.protocol import Engine

APP = "tests.integration.supervisor.scheduled:app"
SWEEP, ONCE = "sweep", "tests.integration.supervisor.scheduled.once"


def lines(folder: Path, name: str) -> list[str]:
    path = folder / name
    return path.read_text().splitlines() if path.exists() else []


def most_at_once(noted: list[str]) -> int:
    """Of runs that came to their end: who was killed never said it."""
    begun: dict[str, int] = {}
    runs: list[tuple[int, int]] = []
    for moment, line in enumerate(noted):
        what, pid = line.split()
        if what == "begin":
            begun[pid] = moment
        else:
            runs.append((begun.pop(pid), moment))
    return max(sum(began <= moment <= ended for began, ended in runs) for moment in range(len(noted)))


@pytest.mark.every_engine
@pytest.mark.row("D4", "D7")
async def test_an_interval_goes_on_whoever_dies(engine: Engine, group: StartGroup, tmp_path: Path) -> None:
    one, two = (group(name, app=APP, environment={"FOLDER": str(tmp_path)}) for name in ("one", "two"))
    for each in (one, two):
        await each.ready()

    def ends() -> int:
        return sum(line.startswith("end") for line in lines(tmp_path, "sweeps"))

    async def more(count: int) -> None:
        wanted = ends() + count
        await until(lambda: ends() >= wanted)

    await more(2)
    await until(lambda: lines(tmp_path, "once"))
    (tmp_path / "die").touch()  # the next run takes its worker process with it
    await until(lambda: not (tmp_path / "die").exists())
    await until(lambda: len(lines(tmp_path, "warm")) >= 3)  # each process, the restarted one too
    await more(2)
    one.kill()  # a supervisor: perhaps the controller's
    await more(2)
    schedules = {each.name: each for each in await engine.schedules.list()}
    assert sorted(schedules) == [SWEEP, ONCE]
    assert {each.source for each in schedules.values()} == {APP}
    (survivor,) = [each.info for each in await engine.members.list() if each.info.pid == two.pid]
    assert (survivor.app, survivor.schedules) == (APP, (SWEEP, ONCE))
    assert await two.stop() == 0
    assert most_at_once(lines(tmp_path, "sweeps")) == 1
    assert len(lines(tmp_path, "once")) == 1  # one start of the cluster
