"""A turn of the side-by-side benchmark, with Penstock as the contender: nothing is installed for it."""

from pathlib import Path

from bench.peers.brokers import SqliteFile
from bench.peers.contender import PENSTOCK, Contender, penstock_home


async def test_a_turn_measures_everything_and_leaves_no_process(tmp_path: Path) -> None:
    contender = Contender(PENSTOCK, penstock_home(), SqliteFile(tmp_path), tmp_path)
    turn = await contender.turn(jobs=300, samples=3)
    assert turn.jobs_s > 0
    assert turn.single_s > 0
    assert turn.bulk_s is not None
    assert turn.bulk_s > turn.single_s
    assert turn.cpu_us > 0
    assert 5 < turn.memory_mb < 500
    assert len(turn.waits_ms) == 3
    assert all(wait > 0 for wait in turn.waits_ms)
    async with contender.producing() as producer:
        assert await producer.ask("left") == {"left": 0}
    assert _processes_in(tmp_path) == []


def _processes_in(folder: Path) -> list[Path]:
    """Those that write their notes there."""
    wanted = f"BENCH_LEDGER={folder}/ledger".encode()
    return [found for found in Path("/proc").glob("[0-9]*") if wanted in _environment(found)]


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
