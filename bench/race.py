"""Processes that begin together and report: raw loops, engines, peers.

Each says a line when it is ready, waits for "go" on standard input, does its work and prints a report, as
JSON."""

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from bench.rounds import Turn

PATIENCE_S = 300.0


class Report(msgspec.Struct, kw_only=True):
    """What one process did."""

    jobs: int
    began: float
    """By the monotonic clock, which is the same for all processes of a machine."""
    ended: float
    cpu_s: float


async def race(
    command: Sequence[str], processes: int, jobs: int, also: Callable[[], float], folder: Path | None = None
) -> tuple[Turn, list[Report]]:
    """From the first beginning to the last end of all of them, which must have done so many jobs together.
    `also` is processor time of others who work for them."""
    children: list[Process] = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(processes):
                child = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, cwd=folder)
                children.append(child)
            for child in children:
                await _line(child)
            cpu_s = also()
            for child in children:
                assert child.stdin is not None
                child.stdin.write(b"go\n")
            reports = [msgspec.json.decode(await _line(child), type=Report) for child in children]
            cpu_s = also() - cpu_s + sum(report.cpu_s for report in reports)
            for child in children:
                await child.wait()
    finally:
        for child in children:
            with suppress(ProcessLookupError):
                child.kill()
    done = sum(report.jobs for report in reports)
    if done != jobs:
        raise RuntimeError(f"{jobs} jobs were enqueued and {done} settled")
    worked = [report for report in reports if report.jobs]
    took = max(report.ended for report in worked) - min(report.began for report in worked)
    return Turn(jobs / took, 1e6 * cpu_s / jobs), reports


async def _line(child: Process) -> bytes:
    assert child.stdout is not None
    line = await child.stdout.readline()
    if not line:
        raise RuntimeError("a child of the benchmark failed; its error stands above")
    return line
