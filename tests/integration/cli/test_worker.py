"""`tidemill worker`, as it is started; what it does then is tested in tests/integration/supervisor."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import Store
from tests.programs import running
from tidemill.model.member import Health

SHOP = """
import asyncio
from tidemill import Tidemill, Retry

app = Tidemill({url!r})
app.queue("mail", timeout=30)

@app.task
async def double(n: int) -> int:
    return 2 * n

@app.task(queue="mail", retry=Retry(attempts=1))
def fails(text: str) -> None:
    raise ValueError(text)

print("an application may print")
"""


@pytest.fixture
def shop(engine_mode: str, tmp_path: Path) -> Store:
    """An application in the working folder, `shop:app`, and its store."""
    store = Store(f"sqlite:///{tmp_path}/shop.db")
    (tmp_path / "shop.py").write_text(SHOP.format(url=store.url))
    return store


@contextmanager
def worker(*options: str) -> Iterator[subprocess.Popen[str]]:
    """A worker that is ready."""
    command = (sys.executable, "-m", "tidemill", "worker", *options)
    with running(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if "is ready" in line:
                    break
            yield process
        finally:
            process.terminate()
            process.stderr.read()
            process.wait(30)


def config_of(ran: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(ran.splitlines()[-1])
    return found


@pytest.mark.row("A11")
def test_every_setting_of_a_worker_can_be_an_option(shop: Store, execute: Run) -> None:
    options = (
        "-p 2..6 --scale-wait 1s --scale-calm 9 --recycle-after-jobs 100 --recycle-above-mb 512 "
        "-c 20 -q mail -q default --heartbeat 1s --lease 9s --sweep 3 --give-up-after 5 --namespace n "
        "--shutdown-timeout 1m --cancel-grace never --log-format json --url sqlite:///x.db"
    )
    ran = execute("_worker_config", "shop:app", *options.split())
    assert ran.code == 0, ran
    expected = {
        "app": "shop:app",
        "url": "sqlite:///x.db",
        "namespace": "n",
        "processes": 2,
        "processes_most": 6,
        "scale_wait_s": 1.0,
        "scale_calm_s": 9.0,
        "recycle_after_jobs": 100,
        "recycle_above_mb": 512,
        "slots": 20,
        "queues": ["mail", "default"],
        "heartbeat_s": 1.0,
        "lease_s": 9.0,
        "sweep_s": 3.0,
        "give_up_after": 5,
        "shutdown_timeout_s": 60.0,
        "cancel_grace_s": None,
        "log_format": "json",
    }
    assert expected.items() <= config_of(ran.out).items()


def test_without_options_a_worker_takes_all_queues_of_its_application(shop: Store, execute: Run) -> None:
    found = config_of(execute("_worker_config", "-A", "shop:app").out)
    assert found["queues"] == ["default", "mail"]
    assert found["url"] == shop.url


def test_the_application_may_come_from_the_settings(
    shop: Store, execute: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMILL_APP", "shop:app")
    monkeypatch.setenv("TIDEMILL_SLOTS", "7")
    found = config_of(execute("_worker_config").out)
    assert (found["app"], found["slots"]) == ("shop:app", 7)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "which application?"),
        (("nowhere:app",), "nowhere"),
        (("shop:nothing",), "name the variable that holds Tidemill(...)"),
        (("shop:ap",), "'shop' has no 'ap'; did you mean 'app'?"),
        (("shop",), "module:attribute"),
        (("shop:app", "-c", "0"), "option --slots: slots is a whole number between"),
        (("shop:app", "-p", "x"), "option --processes: processes is a whole number or MIN..MAX"),
        (("shop:app", "-p", "4..1"), "MIN not above MAX, such as 4 or 1..4, not '4..1'"),
        (("shop:app", "-p", "0.."), "such as 4 or 1..4, not '0..'"),
        (("shop:app", "--recycle-after-jobs", "0"), "a whole number between 1 and"),
        (("shop:app", "-q", "a b"), "names of queues"),
        (("shop:app", "--heartbeat", "5s"), "longer than two heartbeats"),
        (("shop:app", "--url", "nowhere://"), "not an engine's URL scheme"),
        (("broken:app",), "ZeroDivisionError"),
    ],
)
def test_a_worker_that_cannot_start_says_why(
    shop: Store, execute: Run, tmp_path: Path, args: tuple[str, ...], says: str
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    ran = execute("worker", *args)
    assert ran.code == 2, ran
    assert says in ran.err.splitlines()[-1]
    assert "Traceback" not in ran.err


@pytest.mark.row("C1")
def test_from_the_command_line_to_the_result(shop: Store, execute: Run) -> None:
    url = ("--url", shop.url)
    with worker("shop:app", "-c", "3") as process:
        done = execute("enqueue", "shop.double", "[21]", "--wait-for", "30s", "--json", *url)
        assert done.object["result"] == 42, done
        assert execute("enqueue", "shop.double", '{"n": 4}', "--wait-for", "30s", *url).out == "8\n"
        failed = execute("enqueue", "shop.fails", '["no such user"]', "--wait-for", "30s", *url)
        assert failed.code == 1
        assert "ValueError: no such user" in failed.err
        assert "Traceback" not in failed.err
        [member] = execute("members", "--json", *url).objects
        assert (member["slots"], member["health"]) == (3, Health.HEALTHY)
        assert member["roles"] == ["worker", "controller"]
        [letter] = execute("dead", "ls", "--json", *url).objects
        assert letter["queue"] == "mail"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert execute("members", "--json", *url).objects == []
    with worker("shop:app", "--no-controller"):
        assert execute("members", "--json", *url).object["roles"] == ["worker"]
