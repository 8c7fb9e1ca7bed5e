"""Statistics over time: sums of each step, made by the server."""

from typing import Any

from tidemill.engine.shared.statements import load_statements
from tidemill.engine.shared.stats import StatsSpan
from tidemill.engines.postgres.db.connect import Connection
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.model.stats.series import StatsSeries
from tidemill.model.view import Finished

SQL = load_statements("tidemill.engines.postgres", "stats")


async def read(store: PostgresStore, span: StatsSpan) -> list[StatsSeries]:
    """What is known of a span."""
    bounds = (span.step, span.first, span.until, span.queue)

    async def work(connection: "Connection[Any]") -> None:
        for row in await connection.fetch(store.sql(SQL.packed), *bounds, int(span.by_task), span.task):
            span.add_cells(*row)
        if not span.by_task:
            for queue, at, completed, failed, died, cancelled in await connection.fetch(
                store.sql(SQL.finished), *bounds
            ):
                ended = Finished(completed=completed, failed=failed, died=died, cancelled=cancelled)
                span.add_finished(queue, at, ended)
            for row in await connection.fetch(store.sql(SQL.samples), *bounds):
                span.add_sample(*row)

    await store.snapshot(work)
    return span.series()
