"""How long a connection waits before the next try."""

import time

import pytest

from tidemill.engine.shared.calls.reconnecting import BACKOFF_S, Reconnecting
from tidemill.model.errors import EngineUnavailable, TidemillError
from tidemill.model.time import SECOND, Span


class Unreachable(Reconnecting[object]):
    """There is no server."""

    def __init__(self) -> None:
        super().__init__("nowhere", 30.0)

    async def _open(self) -> object:
        raise OSError("no route")

    async def _drop(self, connection: object) -> None:
        raise AssertionError("nothing was opened")

    def _is_stale(self, connection: object) -> bool:
        return False

    def _translated(self, error: Exception) -> TidemillError:
        return EngineUnavailable(str(error))

    async def wait_after(self, failures: int) -> float:
        """Try once more after so many failures; the wait that follows."""
        self._failures, self._not_before = failures, 0.0
        with pytest.raises(EngineUnavailable):
            await self._ready()
        return self._not_before - time.monotonic()


@pytest.mark.parametrize(("lease", "most_s"), [(None, BACKOFF_S[1]), (60 * SECOND, 2.0), (SECOND, 0.25)])
async def test_heartbeats_try_again_within_a_lease_however_long_the_outage_was(
    lease: Span | None, most_s: float
) -> None:
    connection = Unreachable()
    if lease is not None:
        connection.hurry(lease)
    waits = [await connection.wait_after(failures) for failures in range(30)]
    assert max(waits) <= most_s
    assert max(waits) > most_s / 3
    await connection.close()
