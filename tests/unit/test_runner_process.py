"""What a runner process makes of a job's end, without the process."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tidemill.model.ids import new_id
from tidemill.model.jobs.run import ClaimedJob
from tidemill.task.current import Abort, ControlledJob
from tidemill.task.definition import Definition
from tidemill.worker.runner.main import perform
from tidemill.worker.runner.messages import Raised

JOB = ClaimedJob(
    id=new_id(),
    fence=1,
    seq=1,
    task="f",
    queue="q",
    priority=5,
    attempt=1,
    max_attempts=3,
    codec=1,
    body=b"[[],{}]",
    headers=None,
    key=None,
    timeout=None,
    retry=None,
    created_at=0,
    ready_at=0,
    crashes=0,
    suspect=False,
    limited=False,
    on_dead=None,
    schedule=None,
)


class Unheard:
    def progress(self, value: bytes) -> None: ...
    def log(self, level: str, message: str) -> None: ...


def untyped():  # type: ignore[no-untyped-def]
    return datetime.now(UTC)


def large() -> str:
    return "x" * (1 << 21)


class Broken:
    def model_dump(self, **options: Any) -> Any:
        raise RuntimeError("no")

    @classmethod
    def model_validate(cls, value: Any) -> "Broken":
        return cls()


def broken() -> Broken:
    return Broken()


@pytest.mark.parametrize("aborted", [None, Abort.DRAIN])
@pytest.mark.parametrize(
    ("function", "kind"), [(untyped, "datetime.datetime"), (large, "str"), (broken, f"{__name__}.Broken")]
)
def test_a_result_that_cannot_be_stored_is_final(function: Any, kind: str, aborted: Abort | None) -> None:
    running = ControlledJob(JOB, Unheard())
    if aborted is not None:
        running.abort(aborted)
    outcome = perform(Definition(function, name="f"), JOB, running)
    assert isinstance(outcome, Raised)
    assert outcome.failure.kind == "payload"
    assert f"the result of f, a {kind}: " in outcome.failure.message
