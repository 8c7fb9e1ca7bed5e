"""The controller among real processes: killed, stopped, ended, or not there at all."""

import time
from pathlib import Path

import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import Group
from tests.integration.supervisor.processes import until
from tidemill.engine.protocol import Engine
from tidemill.model.view import Lease

LEASE_S = 1.0
CEILING_S = 15.0
"""Generous: the bound that is promised is one lease."""

RECORDS = """
import os, sys
import msgspec
from tidemill.worker.member import candidate
from tidemill.worker.config import WorkerConfig
from tidemill.worker.member.supervisor import supervise

class Record:
    name, every = "record", 0.02

    async def run(self, engine, term):
        if term.trusted():
            line = f"{term.fence} {os.getpid()}\\n".encode()
            file = os.open(os.environ["RECORD"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(file, line)
            os.close(file)

candidate.all_ticks = lambda: [Record()]
sys.exit(supervise(msgspec.json.decode(sys.argv[1], type=WorkerConfig)))
"""
"""A member whose controller writes down what it does: term and process."""


def recorded(path: Path) -> list[tuple[int, int]]:
    if not path.exists():
        return []
    lines = [line.split() for line in path.read_text().splitlines()]
    return [(int(fence), int(pid)) for fence, pid in lines]


async def elected(engine: Engine) -> Lease | None:
    leases = [lease for lease in await engine.leases.list() if lease.name == "controller"]
    return leases[0] if leases else None


@pytest.fixture
def stand(group: StartGroup, tmp_path: Path) -> "Stand":
    return Stand(group, tmp_path / "record")


class Stand:
    """Starts members that stand and record."""

    def __init__(self, group: StartGroup, path: Path) -> None:
        self._group = group
        self.path = path

    def __call__(self, name: str) -> Group:
        return self._group(
            name, roles=("controller",), program=RECORDS, environment={"RECORD": str(self.path)}
        )

    async def serves(self, one: Group) -> int:
        """Wait until this one does something after this call; its term."""
        before = len(recorded(self.path))
        await until(lambda: any(pid == one.pid for _, pid in recorded(self.path)[before:]))
        return max(fence for fence, pid in recorded(self.path) if pid == one.pid)


@pytest.mark.every_engine
@pytest.mark.row("D1", "F2")
async def test_another_takes_over_when_the_controller_is_killed(engine: Engine, stand: Stand) -> None:
    one = stand("one")
    first = await stand.serves(one)
    other = stand("other")
    await until(lambda: "standing for controller" in other.log)
    assert "elected" not in other.log
    one.kill()
    began = time.monotonic()
    second = await stand.serves(other)
    took_s = time.monotonic() - began
    print(f"another took over after {took_s:.2f} s, with a lease of {LEASE_S} s")
    assert second > first
    assert took_s < CEILING_S
    assert await other.stop() == 0
    assert await elected(engine) is None


@pytest.mark.every_engine
@pytest.mark.row("D1", "B2")
async def test_a_controller_that_was_stopped_past_its_lease_does_nothing_with_its_old_term(
    stand: Stand,
) -> None:
    one = stand("one")
    first = await stand.serves(one)
    other = stand("other")
    one.freeze()
    second = await stand.serves(other)
    one.thaw()
    await until(lambda: f"no longer the controller (term {first})" in one.log)
    await stand.serves(other)
    assert await other.stop() == 0
    third = await stand.serves(one)  # it stood again
    fences = [fence for fence, _ in recorded(stand.path)]
    assert fences == sorted(fences), "no older term after a younger one"
    assert first < second < third
    assert await one.stop() == 0


@pytest.mark.row("D1")
async def test_a_worker_hands_over_when_it_drains_and_one_that_may_not_stand_does_not(
    engine: Engine, group: StartGroup
) -> None:
    only_works = await group("works", roles=("worker",)).ready()
    assert await elected(engine) is None
    one = await group("one").ready()
    await until(lambda: "elected controller" in one.log)
    other = await group("other").ready()
    assert await one.stop() == 0
    assert "handed the controller's work over" in one.log
    await until(lambda: "elected controller" in other.log)
    assert "elected" not in only_works.log
    lease = await elected(engine)
    (leader,) = [member for member in await engine.members.list() if member.info.pid == other.pid]
    assert lease is not None
    assert lease.holder == leader.info.id.hex()
    assert leader.info.roles == ("worker", "controller")
