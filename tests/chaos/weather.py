"""What a process of a run loses on purpose now: the runner says so in a file, one for each member."""

import random
from pathlib import Path

import msgspec

from tidemill.model.errors import EngineUnavailable


class NeverArrived(EngineUnavailable):
    """The caller cannot know it, the judge does: this call was not applied."""


class Forecast(msgspec.Struct, omit_defaults=True):
    """Shares of what is lost, 0 to 1."""

    requests: float = 0.0
    replies: float = 0.0
    drop_signals: float = 0.0
    double_signals: float = 0.0
    die_at: str = ""
    """A named point, such as "after settle": whoever comes there first dies."""
    token: str = ""
    """Names that death, so that it happens once."""


def announce(path: Path, forecast: Forecast) -> None:
    """The runner's side: whole or not at all."""
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(forecast))
    new.rename(path)


def struck(folder: Path, token: str) -> bool:
    """Whether a named death has happened."""
    return _trace(folder, token).exists()


def _trace(folder: Path, token: str) -> Path:
    return folder / f"{token}.struck"


class Weather:
    """A process's side."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: int | None = None
        self._forecast = Forecast()

    def outward(self) -> None:
        if random.random() < self._now().requests:
            raise NeverArrived("lost on its way to the engine")

    def homeward(self) -> None:
        if random.random() < self._now().replies:
            raise EngineUnavailable("the answer was lost on its way")

    def drops_signals(self) -> bool:
        return random.random() < self._now().drop_signals

    def doubles_signals(self) -> bool:
        return random.random() < self._now().double_signals

    def is_deadly(self, point: str) -> bool:
        """Whether this process is the one to die here."""
        now = self._now()
        if now.die_at != point:
            return False
        try:
            _trace(self._path.parent, now.token).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _now(self) -> Forecast:
        try:
            changed = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return Forecast()
        if changed != self._read:
            self._forecast = msgspec.json.decode(self._path.read_bytes(), type=Forecast)
            self._read = changed
        return self._forecast
