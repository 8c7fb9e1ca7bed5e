"""Peers as subjects of comparisons. (A module named as a package here would hide it from its own program.)"""

import asyncio
import json
import subprocess
from pathlib import Path

from bench.peers.environment import python_with
from bench.rounds import Subject, Turn

VERSION = "3.5.4"
_PROGRAM = Path(__file__).with_name("huey_sqlite.py")


def huey(folder: Path, errand: str, jobs: int, durability: str) -> Subject:
    """A turn of `enqueue` or `drain`. `PeerMissing` if it cannot be had here."""
    python = python_with("huey", VERSION)
    command = [str(python), str(_PROGRAM), errand, str(folder), str(jobs), durability]

    async def turn() -> Turn:
        run = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise RuntimeError(f"huey: {run.stderr}")
        found = json.loads(run.stdout)
        return Turn(found["jobs_s"], found["cpu_us"])

    return turn
