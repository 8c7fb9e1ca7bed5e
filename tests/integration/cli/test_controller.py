"""`tidemill controller`, and what a cluster without one looks like."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import Store
from tests.programs import running
from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.member import Detail, MemberInfo, ProcessDetail, RunDetail
from tidemill.model.time import HOUR

APP = """
from tidemill import Tidemill

app = Tidemill({url!r})
"""


@contextmanager
def controller(*options: str) -> Iterator[subprocess.Popen[str]]:
    """One that was elected."""
    command = (sys.executable, "-m", "tidemill", "controller", *options)
    with running(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            said = []
            for line in process.stderr:
                said.append(line)
                if "elected controller" in line:
                    break
            else:
                pytest.fail("".join(said))
            yield process
        finally:
            process.terminate()
            process.stderr.read()
            process.wait(30)


@pytest.mark.every_engine
@pytest.mark.row("D1")
def test_a_controller_stands_alone_and_hands_over_when_told_to_end(store: Store, run: Run) -> None:
    with controller("--heartbeat", "0.2s", "--lease", "1s") as process:
        member = run("members", "--json").object
        expected = {"pid": process.pid, "roles": ["controller"], "controller": True, "slots": 0, "queues": []}
        assert expected.items() <= member.items()
        shown = run("members")
        assert "controller*" in shown.out
        assert "warning" not in shown.err
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert run("members", "--json").objects == []
    assert store.do(lambda engine: engine.leases.list()) == []


def test_the_application_says_where(store: Store, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMILL_URL")
    with open("shop.py", "w") as file:
        file.write(APP.format(url=store.url))
    with controller("shop:app") as process:
        assert run("members", "--json", "--url", store.url).object["pid"] == process.pid


@pytest.mark.row("D1", "D3")
def test_a_cluster_in_which_nobody_stands_is_warned_of(store: Store, run: Run) -> None:
    async def heartbeat(engine: Engine, roles: tuple[str, ...] = ("worker",)) -> None:
        detail = Detail(
            memory=3 << 20,
            processes=(
                ProcessDetail(pid=7, memory=2 << 20, held=12, started=1, runs=(RunDetail("the-job", 1.5),)),
            ),
        )
        info = MemberInfo(
            id=new_id(), name="here:1", roles=roles, lease=HOUR, detail=msgspec.json.encode(detail)
        )
        await engine.members.heartbeat(info)

    assert "controller" not in run("doctor").err, "an empty store is no trouble"
    store.do(heartbeat)
    for command in ("members", "doctor"):
        assert "warning: no member stands for controller" in run(command).err
    doctor = run("doctor", "--json")
    assert doctor.code == 1
    assert [warning["kind"] for warning in doctor.object["warnings"]] == ["controller"]
    store.do(lambda engine: heartbeat(engine, ("worker", "controller")))
    assert run("doctor").code == 0
    shown = run("members", "-v")
    assert "warning" not in shown.err
    assert "5.0 MiB" in shown.out
    assert "the-job (1.5 s) and 11 more" in shown.out
    [first, _] = run("members", "--json").objects
    assert first["memory"] == 3 << 20
    assert first["processes"][0]["runs"] == [{"id": "the-job", "for_s": 1.5}]
