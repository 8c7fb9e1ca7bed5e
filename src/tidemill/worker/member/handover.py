"""The statistics of a member's processes on their way to the engine: `model.stats.batch`.

The batch that goes with a heartbeat stays the same, under its number, until a heartbeat that carried it was
answered. What comes meanwhile waits for the next batch. That is little: processes send their sums after
answered heartbeats and before they end.
"""

import logging
from collections import deque
from collections.abc import Sequence

from tidemill.model.errors import BadInput
from tidemill.model.stats.batch import StatsBatch, StatsRow, check_rows, merged

log = logging.getLogger("tidemill.worker")


class Handover:
    """Rows are added in any thread; the rest belongs to the loop of the heartbeats."""

    def __init__(self) -> None:
        self._rows: deque[StatsRow] = deque()
        self._batch: StatsBatch | None = None
        self._number = 0

    def add(self, rows: Sequence[StatsRow]) -> None:
        """Sums of one worker process. A broken process may say anything: what is no statistic is dropped,
        because a heartbeat with it would be refused."""
        try:
            check_rows(rows)
        except BadInput as error:
            log.debug("statistics of a worker process are dropped: %s", error)
            return
        self._rows.extend(rows)

    def batch(self) -> StatsBatch | None:
        """What goes with the next heartbeat. None: there is nothing."""
        if self._batch is None and self._rows:
            rows = [self._rows.popleft() for _ in range(len(self._rows))]
            self._number += 1
            self._batch = StatsBatch(self._number, tuple(merged(rows)))
        return self._batch

    def applied(self) -> None:
        """The heartbeat with the last batch was answered."""
        self._batch = None
