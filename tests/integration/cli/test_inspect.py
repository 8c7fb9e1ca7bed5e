"""`stats`, `queues`, `members`, `migrate`, `config`."""

import re
from pathlib import Path
from unittest.mock import ANY

import pytest

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import Store
from tidemill.model.member import MemberInfo
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.model.stats.batch import StatsBatch, StatsRow
from tidemill.model.stats.histogram import histogram_of, pack_both
from tidemill.model.stats.sample import QueueSample
from tidemill.model.time import MINUTE, SECOND
from tidemill.task.settings import Settings
from tidemill.testing.contract.fixtures import configure

NO_TIMES = {"count": 0, "p50_s": None, "p90_s": None, "p95_s": None, "p99_s": None}


@pytest.mark.every_engine
@pytest.mark.row("C3")
def test_stats_count_every_queue_now_and_in_the_window(store: Store, run: Run) -> None:
    store.completed(3)
    store.dead(2)
    store.put(1)
    store.do(lambda engine: configure(engine, "empty", QueueOptions()))
    run("jobs", "clear", "--state", "completed", "--yes")
    empty_not, empty = sorted(run("stats", "--json").objects, key=lambda queue: queue["queue"])
    assert empty_not | {"age_s": 0} == {
        "queue": "default",
        "ready": 1,
        "scheduled": 0,
        "running": 0,
        "blocked": 0,
        "completed": 0,
        "dead": 2,
        "cancelled": 0,
        "window_s": 86_400.0,
        "window": {"completed": 3, "failed": 2, "died": 2, "cancelled": 0},
        "age_s": 0,
        "oldest_ready_s": ANY,
        "oldest_in_window_s": None,
        "arrived": None,
        "wait": NO_TIMES,
        "run": NO_TIMES,
    }
    assert empty_not["oldest_ready_s"] >= 0
    assert empty["oldest_ready_s"] is None
    assert (empty["queue"], empty["ready"]) == ("empty", 0)


def test_stats_for_people_end_with_a_sum(store: Store, run: Run) -> None:
    store.put(2)
    store.put(1, queue="mail")
    ran = run("stats", "--window", "5m")
    assert ran.out.splitlines()[-1].split()[:2] == ["(all)", "3"]
    assert "in 5 min" in ran.err


def test_a_dropped_dead_letter_has_died_and_is_not_dead(store: Store, run: Run) -> None:
    store.dead(2)
    run("dead", "drop", "--all", "--yes")
    shown = of_first_queue(run("stats").out)
    assert (shown["DEAD"], shown["DIED"]) == ("0", "2")
    counted = run("stats", "--json").object
    assert (counted["dead"], counted["window"]["died"]) == (0, 2)


def of_first_queue(table: str) -> dict[str, str]:
    head, queue, *_ = (re.split(r"\s{2,}", line.strip()) for line in table.splitlines())
    return dict(zip(head, queue, strict=True))


@pytest.mark.row("C3")
def test_stats_show_how_long_jobs_waited_and_ran(store: Store, run: Run) -> None:
    wait, long = histogram_of([SECOND // 10] * 90 + [20 * SECOND] * 10), histogram_of([3 * SECOND])
    row = StatsRow("default", "t", pack_both(wait, long))
    store.put(1)
    store.do(
        lambda engine: engine.members.heartbeat(
            MemberInfo(id=bytes(16), name="m"), statistics=StatsBatch(1, (row,))
        )
    )
    minute = store.do(lambda engine: engine.now()) // MINUTE * MINUTE
    sample = QueueSample(queue="default", stock=1, arrived=7, oldest_ready=9 * SECOND)
    store.do(lambda engine: engine.queues.sample(minute, [sample]))
    shown = run("stats", "--window", "5m", "--json").object
    assert (shown["wait"]["count"], shown["run"]["count"]) == (100, 1)
    assert shown["wait"]["p50_s"] == shown["wait"]["p90_s"] == pytest.approx(0.1, rel=0.225)
    assert shown["wait"]["p95_s"] == shown["wait"]["p99_s"] == pytest.approx(20, rel=0.225)
    assert shown["run"]["p50_s"] == pytest.approx(3, rel=0.225)
    assert (shown["arrived"], shown["oldest_in_window_s"]) == (7, 9)
    table = run("stats", "--window", "5m").out
    texts = of_first_queue(table)
    assert texts["WAIT P50"].endswith(" ms")
    assert [texts[head].endswith(" s") for head in ("WAIT P95", "RUN P50", "RUN P95")] == [True] * 3
    assert texts["OLDEST"].endswith("s")


@pytest.mark.parametrize("window", ["0", "5", "x", "1000d"])
def test_a_window_is_a_minute_or_more(store: Store, run: Run, window: str) -> None:
    ran = run("stats", "--window", window)
    assert ran.code == 2
    assert "a length of time between 1m and 31d, such as 5m, 24h or 7d" in ran.err


def test_queues_show_their_options(store: Store, run: Run) -> None:
    options = QueueOptions(concurrency=5, rate=Rate(100, per=60), per_key=Limit(concurrency=2), timeout=30)
    store.do(lambda engine: configure(engine, "mail", options))
    store.do(lambda engine: engine.queues.pause("mail", by="me", why="maintenance"))
    queue = run("queues", "ls", "--json").object
    assert queue["name"] == "mail"
    assert queue["options"]["concurrency"] == 5
    assert queue["paused_by"] == "me"
    text = run("queues", "ls").out
    for part in ("5 at once, 100 in 60 s", "2 at once", "by me: maintenance", "timeout=30"):
        assert part in text


def test_members_show_their_health_and_load(store: Store, run: Run) -> None:
    assert run("members").err.startswith("nobody is there")
    store.put(2)
    store.take()
    member = run("members", "--json").object
    shown = {"name": "host:1", "health": "healthy", "running": 2, "slots": 3, "queues": ["default"]}
    assert shown.items() <= member.items()
    assert "host:1" in run("members").out


def test_migrate_makes_a_store(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    assert run("jobs", "ls", "--url", url).code == 2
    ran = run("migrate", "--url", url)
    assert (ran.code, ran.out) == (0, f"{url} is up to date\n")
    assert run("migrate", "--url", url).code == 0
    assert run("jobs", "ls", "--url", url).code == 0


@pytest.mark.row("A11")
def test_config_shows_each_value_and_where_it_came_from(store: Store, run: Run, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TIDEMILL_SLOTS=20\n")
    (tmp_path / "pyproject.toml").write_text("[tool.tidemill]\nprocesses = 3\n")
    ran = run("config", "show", "--namespace", "shop", "--json")
    shown = {row["name"]: (row["value"], row["source"]) for row in ran.objects}
    assert list(shown) == list(Settings.table())
    assert shown["namespace"] == ("shop", "option --namespace")
    assert shown["url"] == (store.url, "environment TIDEMILL_URL")
    assert shown["slots"] == ("20", f"{tmp_path}/.env TIDEMILL_SLOTS")
    assert shown["processes"] == ("3", f"{tmp_path}/pyproject.toml [tool.tidemill] processes")
    assert shown["lease"] == ("10s", "default")
    assert shown["keep_completed"] == ("", "default"), "as the engine keeps them"
    hidden = run("config", "show", "--url", "postgresql://me:s3cret@h/d").out
    assert "postgresql://me:***@h/d" in hidden
    assert "s3cret" not in hidden


def test_config_points_at_variables_that_are_no_settings(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMILL_SLOT", "20")
    assert "TIDEMILL_SLOT, which is not a setting" in run("config", "show").err


def test_config_example_is_a_file_to_start_from(run: Run) -> None:
    assert "# TIDEMILL_SLOTS=10\n" in run("config", "example").out
