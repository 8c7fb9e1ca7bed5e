"""From what a function did to the outcome that goes to the engine."""

import asyncio

import pytest

from tests.unit.worker.builders import a_registry, a_run
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.run import Completed, Failed, Stopped
from tidemill.task.current import Abort, Aborted
from tidemill.worker.running.outcomes import NOTHING, Instead, raised, refused_payload, returned
from tidemill.worker.running.task_rules import TIMEOUT_LINEAGE

OWN = asyncio.CancelledError()


def test_none_is_no_result() -> None:
    assert returned(a_run(), None) is NOTHING
    assert returned(a_run(), [1]) == Completed(result=b"[1]")


@pytest.mark.parametrize("error", [ValueError(), OWN, SystemExit(), Aborted()], ids=repr)
def test_an_exception_without_an_abort_is_a_failure(error: BaseException) -> None:
    ending = raised(a_run(), error)
    assert isinstance(ending, Failed)
    assert ending.failure.kind == "error"


@pytest.mark.parametrize("error", [Aborted("x"), OWN], ids=["Aborted", "CancelledError"])
@pytest.mark.parametrize("reason", Abort)
def test_after_an_abort_its_reason_decides(reason: Abort, error: BaseException) -> None:
    run = a_run(timeout=1_000)
    run.running.abort(reason)
    run.cancelled = True
    ending = raised(run, error)
    match reason:
        case Abort.CANCEL:
            assert ending == Stopped()
        case Abort.TIMEOUT:
            assert isinstance(ending, Failed)
            assert ending.failure.kind == "timeout"
        case Abort.DRAIN:
            assert ending is Instead.RELEASE
        case Abort.LOST:
            assert ending is Instead.DROP


@pytest.mark.parametrize("reason", Abort)
def test_a_cancelled_error_that_we_did_not_throw_is_a_failure_even_then(reason: Abort) -> None:
    run = a_run()
    run.running.abort(reason)
    ending = raised(run, OWN)
    assert isinstance(ending, Failed)
    assert ending.failure.kind == "error"


def test_an_error_while_it_cleans_up_counts_as_the_effect_except_after_cancel() -> None:
    endings = {}
    for reason in Abort:
        run = a_run(timeout=1_000)
        run.running.abort(reason)
        run.cancelled = True
        endings[reason] = raised(run, OSError("connection lost"))
    assert endings[Abort.DRAIN] is Instead.RELEASE
    assert endings[Abort.LOST] is Instead.DROP
    timeout, cancel = endings[Abort.TIMEOUT], endings[Abort.CANCEL]
    assert isinstance(timeout, Failed)
    assert isinstance(cancel, Failed)
    assert (timeout.failure.kind, cancel.failure.kind) == ("timeout", "error")


def test_a_payload_is_never_tried_again() -> None:
    ending = refused_payload(ValueError("not a number"))
    assert (ending.retry_in, ending.failure.kind) == (None, "payload")


def test_the_job_then_the_task_then_the_queue_then_the_app_says_how_often() -> None:
    fixed = {"backoff": "fixed", "jitter": "none"}
    by_task = Retry(base=2, **fixed)  # type: ignore[arg-type]
    by_job = Retry(base=3, **fixed)  # type: ignore[arg-type]
    registry = a_registry(retry=by_task)
    assert a_run(registry=registry).rules.retry_in(a_run(registry=registry).job, ["E"]) == 2_000_000
    run = a_run(registry=registry, retry=by_job, max_attempts=2)
    assert run.rules.retry_in(run.job, ["E"]) == 3_000_000
    last = a_run(registry=registry, retry=by_job, max_attempts=2, attempt=2)
    assert last.rules.retry_in(last.job, ["E"]) is None


def test_to_a_policy_a_timeout_is_a_timeout_error() -> None:
    assert TIMEOUT_LINEAGE[:2] == ["TimeoutError", "OSError"]
    run = a_run(registry=a_registry(retry=Retry(give_up=(TimeoutError,))))
    assert run.rules.retry_in(run.job, TIMEOUT_LINEAGE) is None
