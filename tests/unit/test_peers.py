"""The side-by-side benchmark: who is chosen, how the jobs' notes are read, what becomes table and chart."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from bench import peers_report
from bench.__main__ import main
from bench.chart import Bar, Group, svg
from bench.peers.brokers import first_number, info
from bench.peers.catalogue import PEERS, PROGRAMS
from bench.peers.contender import TIDEMILL, Turn
from bench.peers.ledgers import Event, Ledger, parse_event
from bench.peers.processes import parse_proportional_kb
from bench.peers.recovery import Recovery, judge
from bench.side_by_side import Outcome, Result, chosen


def turn(jobs_s: float, *, bulk_s: float | None = None) -> Turn:
    return Turn(
        jobs_s=jobs_s, single_s=1_000, bulk_s=bulk_s, cpu_us=50, memory_mb=80, waits_ms=[1.0, 2.0, 9.0]
    )


@pytest.fixture
def outcome() -> Outcome:
    ours = Result(
        name="tidemill",
        title="Tidemill",
        engine="redis",
        version="1",
        broker="Redis 7",
        turns=[turn(30_000, bulk_s=90_000), turn(10_000, bulk_s=90_000)],
        recovery=Recovery(interrupted=20, back=20, held=0, lost=0, back_s=12.4),
    )
    peer = Result(
        name="celery",
        title="Celery <x>",
        engine="redis",
        version="celery 5",
        broker="Redis 7",
        turns=[turn(10_000), turn(1_000)],
        beside=ours.turns,
        beside_engine="redis",
        recovery=Recovery(interrupted=2, back=10, held=8, lost=2, back_s=None),
    )
    broken = Result(name="arq", title="arq", engine="redis", version="arq 1", error="it said no")
    return Outcome(
        date="2026-01-01",
        machine="2 cores",
        python="3.11",
        jobs=10_000,
        rounds=2,
        results=[ours, peer, broken],
    )


def test_the_usual_peers_come_by_engine() -> None:
    assert [peer.name for peer in chosen(())] == [
        "huey-sqlite", "pgqueuer", "celery", "dramatiq", "huey-redis", "bullmq",
    ]  # fmt: skip


def test_names_choose_once_and_in_the_order_of_engines() -> None:
    assert [peer.name for peer in chosen(("rq", "graphile", "rq"))] == ["graphile", "rq"]


def test_all_of_them_by_one_word() -> None:
    assert {peer.name for peer in chosen(["all"])} == set(PEERS)


def test_an_unknown_peer_is_told_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"no peer sidekiq; there are huey-sqlite, .*dramatiq-rabbitmq"):
        chosen(("sidekiq",))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--peers", "sidekiq"), "there are huey-sqlite"),
        (("celery",), "belong to --peers"),
        (("--docs",), "belong to --peers"),
    ],
)
def test_the_command_refuses_what_it_cannot_measure(options: tuple[str, ...], says: str) -> None:
    ran = CliRunner().invoke(main, options)
    assert ran.exit_code == 2
    assert says in ran.output


@pytest.mark.parametrize("peer", [*PEERS.values(), TIDEMILL], ids=lambda peer: peer.name)
def test_every_peer_is_pinned_and_says_which_page_recommends_its_configuration(peer: object) -> None:
    assert peer is TIDEMILL or re.fullmatch(r"[\w-]+ \d+(\.\d+)+", peer.version)  # type: ignore[attr-defined]
    program = peer.program if peer.node else f"{peer.program}.py"  # type: ignore[attr-defined]
    assert peer is TIDEMILL or "https://" in (PROGRAMS / program).read_text()


def test_what_jobs_write_is_read(tmp_path: Path) -> None:
    """By another process, as it is in a run."""
    program = "import ledger\nfor turn in (1, 2, 2, 2): ledger.noop(turn)\nledger.event('begin', 7)\n"
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "BENCH_LEDGER": str(tmp_path), "PYTHONPATH": str(PROGRAMS)},
            check=True,
        )
    ledger = Ledger(tmp_path)
    tally = ledger.tally(2)
    assert (tally.jobs, tally.processes) == (6, 2)
    assert 0 < tally.first < tally.last
    assert ledger.tally(1).jobs == 0, "a former turn is over"
    assert [event.job for event in ledger.events("begin")] == [7, 7]
    assert ledger.events("end") == []


def test_a_forked_child_writes_files_of_its_own(tmp_path: Path) -> None:
    program = "import ledger, os\nledger.noop(1)\nif os.fork(): os.wait()\nledger.noop(1)\n"
    environment = {**os.environ, "BENCH_LEDGER": str(tmp_path), "PYTHONPATH": str(PROGRAMS)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    tally = Ledger(tmp_path).tally(1)
    assert (tally.jobs, tally.processes) == (3, 2)


def test_a_line_half_written_is_left_for_later(tmp_path: Path) -> None:
    (tmp_path / "events-1").write_bytes(b"end 3 50\nend 4")
    assert Ledger(tmp_path).events("end") == [Event("end", 3, 50)]
    assert parse_event("stamp 12 99") == Event("stamp", 12, 99)


def test_what_programs_say_is_understood() -> None:
    assert first_number("postgres (PostgreSQL) 15.18 (Debian 15.18-0)") == "15.18"
    assert info("# Server\r\nredis_version:7.0.15\r\nprocess_id:31\r\n", "process_id") == "31"
    assert parse_proportional_kb("Rss:  900 kB\nPss:             412 kB\nPss_Dirty: 9 kB\n") == 412


@pytest.mark.parametrize(
    ("begun", "waiting", "back", "held", "lost", "says"),
    [
        (dict.fromkeys(range(20), 5 * 10**9), 0, 20, 0, 0, "all back in 4 s"),
        (dict.fromkeys(range(2, 20), 5 * 10**9), 0, 18, 0, 2, "2 lost"),
        (dict.fromkeys(range(10, 20), 5 * 10**9), 8, 10, 8, 2, "2 lost, 8 held after 75 s"),
        ({}, 20, 0, 20, 0, "20 held after 75 s"),
        (dict.fromkeys(range(20), 5 * 10**9), -2, 20, 0, 0, "all back in 4 s"),
    ],
)
def test_what_is_left_after_a_kill(
    begun: dict[int, int], waiting: int, back: int, held: int, lost: int, says: str
) -> None:
    found = judge({0, 1}, begun, 10**9, waiting)
    assert (found.back, found.held, found.lost) == (back, held, lost)
    assert str(found) == says


def test_the_table_has_medians_ratios_and_failures(outcome: Outcome) -> None:
    table = peers_report.markdown(outcome)
    assert (
        "| **Tidemill, Redis** | 20,000 |  |  | 1,000 | 90,000 | 50 | 80 | 2.0 / 9.0 | all back in 12 s |"
        in table
    )
    assert "| Celery <x>, Redis | 5,500 | 20,000 | 6.5 | 1,000 | - |" in table, "the median of 3 and of 10"
    assert "2 lost, 8 held after 75 s" in table
    assert "- arq, Redis arq 1: it said no" in table
    assert "Versions: celery 5, arq 1." in table


def test_the_document_can_be_read_back(outcome: Outcome) -> None:
    found = msgspec.json.decode(peers_report.encoded(outcome))
    assert [row.get("ratio") for row in found["results"]] == [None, 6.5, None]
    assert found["results"][0]["medians"]["jobs_s"] == 20_000
    assert found["results"][2]["error"] == "it said no"
    again = msgspec.json.decode(peers_report.encoded(outcome), type=Outcome)
    assert peers_report.markdown(again) == peers_report.markdown(outcome)


def test_the_chart_is_a_picture_with_a_text(outcome: Outcome) -> None:
    picture = ElementTree.fromstring(peers_report.chart([outcome]))
    name = "{http://www.w3.org/2000/svg}"
    bars = picture.findall(f"{name}rect")
    assert [bar.get("class") for bar in bars] == ["bar ours", "bar"], "the longest first"
    assert float(bars[0].get("width") or 0) > 3 * float(bars[1].get("width") or 0)
    assert "Celery <x> 5,500" in (picture.findtext(f"{name}desc") or "")
    assert "prefers-color-scheme: dark" in (picture.findtext(f"{name}style") or "")


def test_a_chart_of_nothing_is_no_error() -> None:
    ElementTree.fromstring(svg("none", [Group("empty", []), Group("zero", [Bar("a", 0)])]))


def test_the_table_goes_between_its_marks() -> None:
    page = f"before\n{peers_report.BEGIN}\nold\n{peers_report.END}\nafter\n"
    assert (
        peers_report.placed(page, "new\n")
        == f"before\n{peers_report.BEGIN}\nnew\n{peers_report.END}\nafter\n"
    )
    with pytest.raises(ValueError, match="no <!-- measured -->"):
        peers_report.placed("nothing", "new")


def test_what_was_published_stays_until_it_is_measured_again(outcome: Outcome, tmp_path: Path) -> None:
    (tmp_path / "peers.md").write_text(f"before\n{peers_report.BEGIN}\n{peers_report.END}\nafter\n")
    peers_report.write(outcome, tmp_path)
    ours, celery, _ = outcome.results
    rq = replace(celery, name="rq", title="RQ")
    other_size = replace(outcome, jobs=5_000, results=[ours, rq])
    peers_report.write(other_size, tmp_path)
    page = (tmp_path / "peers.md").read_text()
    assert page.count("**Tidemill, Redis**") == 2, "a table for each run"
    assert page.count("Celery <x>, Redis") == page.count("| RQ, Redis") == 1
    again = replace(other_size, results=[ours, replace(celery, title="Celery again")])
    peers_report.write(again, tmp_path)
    page = (tmp_path / "peers.md").read_text()
    assert "Celery <x>" not in page
    assert "- arq, Redis arq 1: it said no" in page
    first, second = msgspec.json.decode((tmp_path / "peers.json").read_bytes(), type=list[Outcome])
    assert [one.name for one in first.results] == ["tidemill", "arq"]
    assert [one.name for one in second.results] == ["tidemill", "rq", "celery"], (
        "of one day and size: one table"
    )
    assert len(second.results[0].turns) == 4


def test_what_docs_show_is_what_was_measured() -> None:
    """Table, figures and chart of the page are of the same runs, or none of them is there."""
    docs = Path(__file__).parents[2] / "docs"
    page, figures, picture = docs / "peers.md", docs / "peers.json", docs / "peers.svg"
    if peers_report.PICTURE not in page.read_text():
        assert not figures.exists()
        assert not picture.exists()
        return
    runs = msgspec.json.decode(figures.read_bytes(), type=list[Outcome])
    assert peers_report.shown(runs) in page.read_text()
    assert peers_report.chart(runs) == picture.read_text()
