"""A turn of the side-by-side benchmark, with Tidemill as the contender: nothing is installed for it."""

from pathlib import Path

import pytest

from bench.peers import rabbitmq
from bench.peers.brokers import SqliteFile
from bench.peers.contender import TIDEMILL, Contender, tidemill_home
from bench.peers.rabbitmq import RabbitMQ
from tests.servers.postgres import NoServer


async def test_a_turn_measures_everything_and_leaves_no_process(tmp_path: Path) -> None:
    contender = Contender(TIDEMILL, tidemill_home(), SqliteFile(tmp_path), tmp_path)
    turn = await contender.turn(jobs=3_000, samples=3)  # processor time is counted in steps of 10 ms
    assert turn.jobs_s > 0
    assert turn.single_s > 0
    assert turn.bulk_s is not None
    assert turn.bulk_s > 0
    assert turn.cpu_us > 0
    assert 5 < turn.memory_mb < 500
    assert len(turn.waits_ms) == 3
    assert all(wait > 0 for wait in turn.waits_ms)
    async with contender.producing() as producer:
        assert await producer.ask("left") == {"left": 0}
    assert _processes_in(tmp_path) == []


def test_a_rabbitmq_of_its_own_is_gone_afterwards(tmp_path: Path) -> None:
    try:
        broker = RabbitMQ(tmp_path)
    except NoServer as missing:  # not an error in CI either: no engine of ours needs it
        pytest.skip(str(missing))
    home = broker.home
    try:
        assert broker.version.startswith("RabbitMQ ")
        assert broker.cpu_s() > 0
        assert _processes_with(f"HOME={home}")
    finally:
        broker.close()
    assert _processes_with(f"HOME={home}") == []
    assert not home.exists()


def test_without_rabbitmq_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rabbitmq, "PROGRAM", str(tmp_path / "absent"))
    with pytest.raises(NoServer, match=r"apt-get install .* rabbitmq-server"):
        RabbitMQ(tmp_path)


def _processes_in(folder: Path) -> list[Path]:
    """Those that write their notes there."""
    return _processes_with(f"BENCH_LEDGER={folder}/ledger")


def _processes_with(variable: str) -> list[Path]:
    """Those that have this in their environment."""
    wanted = variable.encode()
    return [found for found in Path("/proc").glob("[0-9]*") if wanted in _environment(found)]


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
