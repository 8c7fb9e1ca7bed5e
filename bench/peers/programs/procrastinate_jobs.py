"""Procrastinate: `procrastinate --app procrastinate_jobs.app worker`, two such processes.

https://procrastinate.readthedocs.io/en/stable/howto/basics/worker.html: asynchronous tasks run
beside one another, `-c` at once; 50 here.
https://procrastinate.readthedocs.io/en/stable/howto/production/delete_finished_jobs.html: finished jobs
are deleted (`--delete-jobs`).
https://procrastinate.readthedocs.io/en/stable/howto/basics/batch_defer.html: many jobs by
`batch_defer_async`. Jobs of a worker that died are found by
https://procrastinate.readthedocs.io/en/stable/howto/production/retry_stalled_jobs.html, a task of the
user's own that is not part of the worker: it is not here."""
# mypy: disable-error-code="import-not-found, import-untyped, untyped-decorator"

import asyncio

import errands
import ledger
import procrastinate

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=errands.place()))


@app.task(name="noop")
async def noop(turn: int, payload: str) -> None:
    ledger.noop(turn)


@app.task(name="stamp")
async def stamp(job: int) -> None:
    ledger.event("stamp", job)


@app.task(name="slow")
async def slow(job: int) -> None:
    ledger.event("begin", job)
    await asyncio.sleep(ledger.SLOW_S)
    ledger.event("end", job)


TASKS = {"noop": (noop, ("turn", "payload")), "stamp": (stamp, ("job",)), "slow": (slow, ("job",))}


class Jobs:
    async def setup(self) -> None:
        await app.open_async()
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()

    async def one(self, task: str, *arguments: object) -> None:
        function, names = TASKS[task]
        await function.defer_async(**dict(zip(names, arguments, strict=True)))

    async def many(self, turn: int, count: int) -> None:
        await noop.batch_defer_async(*({"turn": turn, "payload": errands.PAYLOAD} for _ in range(count)))

    async def left(self) -> int:
        sql = "SELECT count(*) AS jobs FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
        return int((await app.connector.execute_query_one_async(sql))["jobs"])

    async def close(self) -> None:
        await app.close_async()
