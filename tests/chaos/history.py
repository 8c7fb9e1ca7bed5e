"""What happened in a run: every process writes its own file, line by line, and the judge merges them.

A line is written with one system call before anything else happens, so that a process that is killed leaves
everything up to its last instruction. Times are of the monotonic clock, which all processes of a machine
share, whatever their wall clocks say.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

Phase = Literal["", "invoked", "ok", "failed", "unknown"]
"""An operation is invoked, and ends: it was done, it was not done, or nobody knows. Others have no phase."""


class Event(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One line."""

    kind: str
    """enqueue, cancel, replay, look; claim, settle, release, retire; heartbeat, reclaim, leave; start, end;
    fault, heal, death; acquire, renew, fire; declare, override, reset, pause, resume: see who writes them."""
    at: float
    pid: int
    who: str
    """The process, for people: runner, p0 (a producer), m1 (a member)."""
    phase: Phase = ""
    op: str = ""
    """Joins the invocation of an operation with its end."""
    began: float = 0.0
    """When it was invoked, for operations that are written down once, at their end."""
    jobs: list[str] = []
    fences: list[int] = []
    answers: list[str] = []
    outcomes: list[str] = []
    claimant: str = ""
    member: str = ""
    number: int = 0
    engine_at: int = 0
    """The engine's clock, where it told."""
    task: str = ""
    key: str = ""
    text: str = ""
    pids: list[int] = []
    until: float = 0.0


class Recorder:
    """Writes the history of one process."""

    def __init__(self, folder: Path, who: str) -> None:
        self._who = who
        self._pid = os.getpid()
        self._next = 0
        path = folder / f"{who}-{self._pid}.jsonl"
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, kind: str, **fields: object) -> None:
        event = Event(kind=kind, at=time.monotonic(), pid=self._pid, who=self._who, **fields)  # type: ignore[arg-type]
        os.write(self._fd, msgspec.json.encode(event) + b"\n")

    def invoked(self, kind: str, **fields: object) -> str:
        """The name of an operation that begins now."""
        self._next += 1
        op = f"{self._pid}-{self._next}"
        self.write(kind, phase="invoked", op=op, **fields)
        return op


class Operation(msgspec.Struct, kw_only=True):
    """Something that was asked of the engine, from its invocation to its end."""

    kind: str
    began: float
    ended: float
    """Infinite if it never ended: its process died."""
    phase: Phase
    jobs: list[str]
    fences: list[int]
    answers: list[str]
    outcomes: list[str]
    who: str
    pid: int
    text: str = ""
    number: int = 0
    engine_at: int = 0


class History(msgspec.Struct):
    """All events of a run, in the order of time."""

    events: list[Event]

    def of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.kind in kinds]

    def operations(self, *kinds: str) -> list[Operation]:
        """Invocations with their ends; one without an end is unknown."""
        found: dict[str, Operation] = {}
        for event in self.of(*kinds):
            if event.phase == "invoked":
                found[event.op] = Operation(
                    kind=event.kind,
                    began=event.at,
                    ended=float("inf"),
                    phase="unknown",
                    jobs=event.jobs,
                    fences=event.fences,
                    answers=[],
                    outcomes=event.outcomes,
                    who=event.who,
                    pid=event.pid,
                    text=event.text,
                    number=event.number,
                    engine_at=event.engine_at,
                )
            elif event.op in found:
                operation = found[event.op]
                operation.ended, operation.phase, operation.answers = event.at, event.phase, event.answers
        return list(found.values())


def merged(events: Iterable[Event]) -> History:
    return History(sorted(events, key=lambda event: event.at))


def read_history(folder: Path) -> History:
    """What all processes of a run wrote: whole lines, because one system call writes one."""
    decoder = msgspec.json.Decoder(Event)
    events = []
    for path in folder.glob("*.jsonl"):
        events += [decoder.decode(line) for line in path.read_bytes().split(b"\n") if line]
    return merged(events)
