"""What the jobs wrote down (`programs/ledger.py`), read by the benchmark."""

from pathlib import Path
from typing import NamedTuple

from bench.peers.programs.ledger import PAGE


class Tally(NamedTuple):
    """The no-ops of one turn."""

    jobs: int = 0
    processes: int = 0
    first: int = 0
    last: int = 0
    """Nanoseconds of the monotonic clock, as `first`."""

    @property
    def rate(self) -> float:
        return 1e9 * self.jobs / max(1, self.last - self.first)


class Event(NamedTuple):
    what: str
    job: int
    at: int
    """Nanoseconds of the monotonic clock."""


class Ledger:
    """One folder, in which every process of one contender writes files of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def tally(self, turn: int) -> Tally:
        pages = [PAGE.unpack(page) for page in self._read("tally") if len(page) == PAGE.size]
        mine = [page for page in pages if page[0] == turn]
        if not mine:
            return Tally()
        return Tally(
            jobs=sum(page[1] for page in mine),
            processes=len(mine),
            first=min(page[2] for page in mine),
            last=max(page[3] for page in mine),
        )

    def events(self, what: str) -> list[Event]:
        """Of all processes, in the order of time. A line that is still being written is left for later."""
        lines = [line for file in self._read("events") for line in file.split(b"\n")[:-1]]
        events = [parse_event(line.decode()) for line in lines]
        return sorted((event for event in events if event.what == what), key=lambda event: event.at)

    def _read(self, kind: str) -> list[bytes]:
        return [path.read_bytes() for path in sorted(self.folder.glob(f"{kind}-*"))]


def parse_event(line: str) -> Event:
    what, job, at = line.split()
    return Event(what, int(job), int(at))
