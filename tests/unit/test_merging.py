"""Which enqueues go together: by number and bytes, in their order."""

from collections.abc import Sequence
from typing import Any

import pytest

from tidemill.engine.merging import MERGED_BYTES, StepRoom, steps
from tidemill.engine.protocol import BATCH_LIMIT
from tidemill.engines.sqlite.db.writer import GROUP_ITEMS
from tidemill.engines.sqlite.jobs import enqueue as sqlite
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import NewJob
from tidemill.model.jobs.unique import UniqueKey

HALF = bytes(MERGED_BYTES // 2)


def job(**options: Any) -> NewJob:
    return NewJob(id=new_id(), task="t", queue="q", **options)


def sizes(calls: Sequence[Sequence[NewJob]]) -> list[int]:
    return [len(together) for together in steps(calls)]


UNIQUE = job(unique=UniqueKey(key="k"))


@pytest.mark.parametrize(
    ("calls", "together"),
    [
        ([], []),
        ([[job()]] * 3, [3]),
        ([[job()]] * (BATCH_LIMIT + 1), [BATCH_LIMIT, 1]),
        ([[job()] * 600, [job()] * 400, [job()]], [2, 1]),
        ([[job()] * 600, [job()] * 401], [1, 1]),
        ([[], [job()] * BATCH_LIMIT, []], [3]),
        ([[job(body=HALF)]] * 5, [2, 2, 1]),
        ([[job(body=HALF, headers=b"x")]] * 3, [1, 1, 1]),
        ([[job(body=HALF)] * 9, [job()], [job()]], [1, 2]),
        ([[job()], [job(), UNIQUE], [UNIQUE], [job()], [job()]], [1, 2, 2]),
        ([[UNIQUE], [], [job()]], [2, 1]),
    ],
)
def test_a_step_has_a_bounded_number_of_jobs_and_bytes(
    calls: list[list[NewJob]], together: list[int]
) -> None:
    """A call that is larger than the bound stays whole, and goes alone."""
    assert sizes(calls) == together
    assert [jobs for found in steps(calls) for jobs in found] == calls, "nobody overtakes"


def test_what_does_not_fit_changes_nothing() -> None:
    room = StepRoom()
    assert room.take([job(body=HALF)])
    assert not room.take([job(body=HALF + b"x")])
    assert room.take([job(body=HALF)])
    assert room.is_full


def test_large_jobs_fill_a_transaction_of_sqlite() -> None:
    assert sqlite.size_of([job()] * 7) == 7
    assert GROUP_ITEMS <= sqlite.size_of([job(body=bytes(MERGED_BYTES))]) <= GROUP_ITEMS + 100
