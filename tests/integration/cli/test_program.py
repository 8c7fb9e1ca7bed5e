"""What holds for every command: errors, exit codes, places, pages."""

import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import Store
from tests.programs import running
from tidemill.cli import COMMANDS, main
from tidemill.model.errors import EngineUnavailable

LOOKING = [
    ("jobs", "ls"),
    ("jobs", "cancel", "--all"),
    ("dead", "ls"),
    ("dead", "drop", "--all"),
    ("queues", "ls"),
    ("members",),
    ("stats",),
]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(run: Run, name: str) -> None:
    ran = run(name, "--help")
    assert ran.code == 0
    assert "Usage: tidemill" in ran.out


def test_every_listing_has_json() -> None:
    def walk(group: click.Group, path: str) -> list[str]:
        context = click.Context(group)
        found = []
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                found += walk(command, f"{path} {name}")
            elif command is not None and "--json" in (o for p in command.params for o in p.opts):
                found.append(f"{path} {name}".strip())
        return found

    listings = {
        "jobs ls",
        "jobs show",
        "dead ls",
        "dead show",
        "queues ls",
        "members",
        "stats",
        "config show",
    }
    assert listings <= set(walk(main, ""))


@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_reading_a_file_that_is_not_there_makes_none(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    ran = run(*command)
    assert ran.code == 2
    assert f"there is no {tmp_path}/tidemill.db yet" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "code", "says"),
    [
        ("nowhere://x", 2, "is not an engine's URL scheme"),
        ("tidemill.db", 2, "option --url: url is a URL such as"),
        ("sqlite:////no/such/folder/x.db", 2, "the folder /no/such/folder does not exist"),
        ("sqlite:///x.db?speed=9", 2, "unknown option 'speed'"),
        ("sqlite://", 2, "lives in one process"),
    ],
)
def test_a_wrong_url_is_one_line(run: Run, url: str, code: int, says: str) -> None:
    ran = run("jobs", "ls", "--url", url)
    assert ran.code == code
    assert says in ran.err
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("tidemill: ")


def test_a_file_of_something_else_is_left_alone(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    ran = run("jobs", "ls", "--url", f"sqlite:///{path}")
    assert ran.code == 78
    assert len(ran.err.splitlines()) == 1


def test_a_folder_that_nobody_can_write_is_named(run: Run) -> None:
    ran = run("migrate", "--url", "sqlite:////proc/tidemill.db")
    assert ran.code in (2, 69, 78)
    assert len(ran.err.splitlines()) == 1


@pytest.mark.every_engine
def test_an_engine_out_of_reach_is_69(store: Store, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(*_: object, **__: object) -> None:
        raise EngineUnavailable("the engine does not answer")

    monkeypatch.setattr("tidemill.engine.registry.connect", connect)
    ran = run("stats")
    assert (ran.code, ran.err) == (69, "tidemill: the engine does not answer\n")


@pytest.mark.parametrize("engine_mode", ["sqlite-file"], indirect=True)
def test_a_locked_file_is_69(store: Store, run: Run, tmp_path: Path) -> None:
    store.dead()
    lock = sqlite3.connect(tmp_path / "tidemill.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    ran = run("dead", "drop", "--all", "--yes", "--url", store.url + "&lock_timeout=0.1")
    lock.execute("ROLLBACK")
    lock.close()
    assert ran.code == 69
    assert len(ran.err.splitlines()) == 1


def test_debug_shows_the_traceback_and_otherwise_there_is_none(execute: Run) -> None:
    plain, debug = execute("jobs", "ls"), execute("jobs", "ls", "--debug")
    assert "Traceback" not in plain.err
    assert "Traceback" in debug.err
    assert "Traceback" in execute("--debug", "jobs", "ls").err


@pytest.mark.parametrize("command", [("worker", "shop:app"), ("jobs", "ls", "-A", "shop:app")])
def test_debug_shows_where_an_application_cannot_be_imported(
    execute: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "shop.py").write_text("def broken():\n    import nowhere\n\nbroken()\n")
    plain, debug = execute(*command), execute(*command, "--debug")
    assert (plain.code, debug.code) == (2, 2)
    assert "Traceback" not in plain.err
    assert "in broken" in debug.err
    assert debug.err.endswith(plain.err)


def test_a_bug_says_so(run: Run, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("tidemill.cli.commands.stats.with_engine", broken)
    ran = run("stats")
    assert ran.code == 70
    assert ran.err == "tidemill: this is a bug: ZeroDivisionError: oh (--debug shows the traceback)\n"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("nonsense",), "No such command 'nonsense' (see"),
        (("wroker",), "No such command 'wroker'; did you mean 'worker'? (see"),
        (("events", "-q", "a b"), "'a b' is not a queue name"),
        (("jobs", "ls", "--nonsense"), "No such option"),
        (("jobs", "ls", "--state", "asleep"), "'asleep' is not one of"),
        (("jobs", "show"), "Missing argument"),
        (("jobs", "ls", "--queue", "a b"), "is not a queue name"),
    ],
)
def test_wrong_usage_is_one_line(store: Store, run: Run, args: tuple[str, ...], says: str) -> None:
    ran = run(*args)
    assert ran.code == 2
    assert says in ran.err
    assert len(ran.err.splitlines()) == 1


def test_no_command_shows_the_help(run: Run) -> None:
    ran = run()
    assert ran.code == 2
    assert "Commands:" in ran.err


def test_without_a_terminal_there_is_no_colour(store: Store, execute: Run) -> None:
    store.dead(3)
    for command in (
        ("jobs", "ls"),
        ("dead", "ls"),
        ("stats",),
        ("--help",),
        ("dead", "replay", "--all", "--yes"),
    ):
        ran = execute(*command)
        assert "\x1b" not in ran.out + ran.err


def test_the_url_comes_from_an_option_or_the_settings(run: Run, tmp_path: Path) -> None:
    first, second = Store(f"sqlite:///{tmp_path}/1.db"), Store(f"sqlite:///{tmp_path}/2.db")
    first.put(1)
    second.put(2)
    (tmp_path / ".env").write_text(f"TIDEMILL_URL={first.url}\n")
    assert len(run("jobs", "ls", "--json").objects) == 1
    assert len(run("jobs", "ls", "--json", "--url", second.url).objects) == 2


@pytest.mark.every_engine
@pytest.mark.row("A11")
def test_the_url_may_come_from_the_application(
    engine_mode: str, execute: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    (tmp_path / "shop.py").write_text(f"import tidemill\napp = tidemill.Tidemill({url!r})\nother = 1\n")
    Store(url).put(3)
    assert len(execute("jobs", "ls", "-A", "shop:app", "--json").objects) == 3
    monkeypatch.setenv("TIDEMILL_APP", "shop:app")
    assert len(execute("jobs", "ls", "--json").objects) == 3
    monkeypatch.setenv("TIDEMILL_URL", f"sqlite:///{tmp_path}/elsewhere.db")
    assert execute("jobs", "ls", "--json").code == 2
    for wrong in ("nowhere:app", "shop:nothing", "shop:other", "shop"):
        ran = execute("jobs", "ls", "-A", wrong)
        assert (ran.code, len(ran.err.splitlines())) == (2, 1), ran


def test_the_version_is_shown_quickly() -> None:
    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "tidemill", "--version"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert (
        min(once() for _ in range(3)) < 0.6
    )  # wanted: 0.15 s; processor time, so that a busy machine keeps it
    code = "import tidemill.cli, sys; print(sorted({'rich', 'sqlite3'} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert loaded == "[]\n"


@pytest.mark.parametrize(
    ("script", "code", "says"),
    [
        ("jobs ls --limit all --json > /dev/full", 74, "No space left on device"),
        ("jobs ls --limit all > /dev/full", 74, "No space left on device"),
        ("jobs ls >&-", 0, ""),
        ("stats | true", 141, ""),
    ],
)
def test_an_output_that_cannot_be_written(store: Store, script: str, code: int, says: str) -> None:
    store.put(500)
    command = ["bash", "-c", f"set -o pipefail; {sys.executable} -m tidemill {script}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (code, 0 if code == 141 else code), done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_damaged_file_is_78(store: Store, run: Run, tmp_path: Path) -> None:
    (tmp_path / "noise.db").write_bytes(bytes(range(256)) * 64)
    ran = run("stats", "--url", f"sqlite:///{tmp_path}/noise.db")
    assert ran.code == 78
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("engine_mode", ["sqlite-file"], indirect=True)
def test_an_interrupt_is_130(store: Store) -> None:
    command = (sys.executable, "-m", "tidemill", "enqueue", "x", "-q", "default", "--wait")
    with running(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            process.stderr.readline()  # its id: now it waits
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert process.stderr.read().splitlines()[-1] == "tidemill: interrupted"
        finally:
            process.kill()
