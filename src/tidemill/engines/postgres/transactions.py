"""The `transactions` facet: enqueue and complete on a connection of the caller's own.

Enqueue is one call of a function. It inserts nothing with a unique index except the ids, so nobody ever waits
for the caller's transaction. Its signal is sent with the commit. Every statement carries the identity of the
namespace that it is meant for. Placeholders are $1, $2, ...

A `check` that refuses undoes what its call has stored: by a savepoint, if the call has several jobs. A call
of one job needs none, because a job that is refused was not stored. That matters: a transaction with more
than 64 savepoints slows down everybody's reads."""

from collections.abc import Sequence

from tidemill.engine.merging import has_unique
from tidemill.engine.protocol import BATCH_LIMIT, CheckKnown, Script
from tidemill.engine.shared.checks import check_ids, check_notes, check_settlements, check_transaction
from tidemill.engine.shared.codes import ANSWERS
from tidemill.engine.shared.savepoint import whole
from tidemill.engine.shared.uniques import answers_of_all, not_unique, once
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.engines.postgres.jobs import settle
from tidemill.engines.postgres.jobs.arrays import job_arrays, unique_parameters
from tidemill.model.errors import BadInput
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Fence, KnownCall, NewJob, Stored
from tidemill.model.jobs.run import Answer, Completed, Fate, Note, Settlement, check_own
from tidemill.model.view import Statement

FATES = (Fate.SETTLED, Fate.OPEN, Fate.FREE, Fate.GONE)

_TYPES = (
    "bytea", "text", "text", "smallint", "bytea", "smallint", "bytea", "text",
    "bigint", "bigint", "bigint", "bigint", "bytea", "integer", "text", "text",
)  # fmt: skip
_MARKS = ", ".join(f"${n}::{name}[]" for n, name in enumerate(_TYPES, 1))
_ENQUEUE = (
    f"SELECT {{schema}}.enqueue_here_v1({_MARKS}, $17::text) "
    "FROM {schema}.check_identity_v1($18::text) AS here"
)
_ENQUEUE_UNIQUE = (
    f"SELECT uniques.* FROM {{schema}}.check_identity_v1($19::text) AS here, "
    f"{{schema}}.enqueue_unique_here_v1({_MARKS}, $17::text, $18::text) AS uniques"
)
_FIND_CALLS = "SELECT id, task, codec, body FROM {schema}.job WHERE id = ANY ($1::bytea[])"
_COMPLETE = (
    "SELECT {schema}.complete_here_v1($1::bytea, $2::bigint, $3::bigint, $4::bytea, $5::text) "
    "FROM {schema}.check_identity_v1($6::text) AS here"
)
_WRITE = (
    "SELECT {schema}.write_v1($1::bytea[], $2::bigint[], $3::smallint[], $4::bigint[], $5::text[], "
    "$6::bytea[], NULL) FROM {schema}.check_identity_v1($7::text) AS here"
)
_SET_SCHEDULE = (
    "UPDATE {schema}.schedule SET next_at = {schema}.instant_v1() + $1::bigint "
    "WHERE name = $2::text AND version = coalesce($3::bigint, version)"
)


class PostgresTransactions:
    """See `tidemill.engine.protocol.TransactionsFacet`."""

    def __init__(self, store: PostgresStore, identity: str) -> None:
        self._store = store
        self._identity = identity

    def enqueue(self, jobs: Sequence[NewJob], *, check: CheckKnown | None = None) -> Script[list[Stored]]:
        check_transaction(jobs)
        if check is None:
            return self._enqueue(jobs)
        checked = self._enqueue_checked(jobs, check)
        return checked if len(jobs) < 2 else whole(checked, ())

    def _enqueue(self, jobs: Sequence[NewJob]) -> Script[list[Stored]]:
        if not jobs:
            return []
        if has_unique(jobs):
            return (yield from self._enqueue_unique(jobs))
        ((created,),) = yield self._statement(
            _ENQUEUE, *job_arrays(jobs), self._store.url.channel, self._identity
        )
        new = {bytes(job_id) for job_id in created}
        stored = []
        for job in jobs:
            stored.append(Stored(job.id, job.id in new))
            new.discard(job.id)
        return stored

    def _enqueue_unique(self, jobs: Sequence[NewJob]) -> Script[list[Stored]]:
        different = once(jobs)
        ((met, created, refused),) = yield self._statement(
            _ENQUEUE_UNIQUE, *job_arrays(different), unique_parameters(different),
            self._store.url.channel, self._identity,
        )  # fmt: skip
        if refused is not None:
            job = different[refused - 1]
            raise not_unique(job.task, "" if job.unique is None else job.unique.key, bytes(met[refused - 1]))
        return answers_of_all(jobs, different, map(Stored, map(bytes, met), created))

    def _enqueue_checked(self, jobs: Sequence[NewJob], check: CheckKnown) -> Script[list[Stored]]:
        stored = yield from self._enqueue(jobs)
        if not all(each.created for each in stored):
            rows = yield self._statement(_FIND_CALLS, list({job.id for job in jobs}))
            check([KnownCall(bytes(row[0]), row[1], row[2], row[3] and bytes(row[3])) for row in rows])
        return stored

    def complete(self, settlement: Settlement, notes: Sequence[Note] = ()) -> Script[Answer]:
        if not isinstance(settlement.outcome, Completed):
            raise BadInput("only a completion can be recorded in a transaction of the caller's")
        check_settlements([settlement])
        check_own(settlement, notes)
        check_notes(notes, most=None)
        return self._complete(settlement, settlement.outcome, notes)

    def _complete(self, settlement: Settlement, outcome: Completed, notes: Sequence[Note]) -> Script[Answer]:
        for start in range(0, len(notes), BATCH_LIMIT):
            written = settle.note_parameters(notes[start : start + BATCH_LIMIT])
            yield self._statement(_WRITE, *written, self._identity)
        run = settlement.id, settlement.fence, settlement.ran, outcome.result
        rows = yield self._statement(_COMPLETE, *run, self._store.url.channel, self._identity)
        answer = ANSWERS[rows[0][0]]
        if settlement.then is not None and answer is Answer.APPLIED:
            yield from self._enqueue(settlement.then.jobs)
            if settlement.then.schedule is not None:
                then = settlement.then
                sets = then.schedule_in, then.schedule, then.schedule_version
                yield self._statement(_SET_SCHEDULE, *sets)
        return answer

    async def fates(self, runs: Sequence[tuple[JobId, Fence]]) -> list[Fate]:
        ids, fences = check_ids([run[0] for run in runs]), [run[1] for run in runs]
        ((found,),) = await self._store.read("SELECT {schema}.fates_v1($1, $2)", ids, fences)
        return [FATES[number] for number in found]

    def _statement(self, sql: str, *parameters: object) -> Statement:
        return Statement(self._store.sql(sql), parameters)
