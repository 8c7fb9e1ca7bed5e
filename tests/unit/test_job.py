"""A new job is checked at the edge; a failure is cut to its bounds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.errors import BadInput, PayloadTooLarge
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import (
    MESSAGE_LIMIT,
    PARENTS_LIMIT,
    PAYLOAD_LIMIT,
    TRACEBACK_LIMIT,
    Failure,
    NewJob,
    check_new_job,
    check_new_jobs,
    clip_failure,
)
from tidemill.model.jobs.retry import ATTEMPTS_LIMIT
from tidemill.model.jobs.run import check_result
from tidemill.model.time import FAR_FUTURE, SECOND

ID = new_id()


def a_job(**options: Any) -> NewJob:
    return NewJob(**{"id": ID, "task": "t", "queue": "q", **options})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"body": bytes(PAYLOAD_LIMIT)},
        {"priority": 0, "key": "tenant 7", "timeout": 1, "expires": 1, "attempts": 1},
        {"delay": SECOND},
        {"at": 0},
        {"at": FAR_FUTURE},
        {"after": tuple(new_id() for _ in range(PARENTS_LIMIT)), "parent_died": "wait"},
    ],
)
def test_a_good_job_passes_as_it_is(options: dict[str, Any]) -> None:
    job = a_job(**options)
    assert check_new_job(job) is job


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"id": b"short"}, "16 bytes"),
        ({"task": "two words"}, "task name"),
        ({"queue": ""}, "queue name"),
        ({"priority": 11}, "priority"),
        ({"priority": -1}, "priority"),
        ({"key": "a\x1fb"}, "a key"),
        ({"key": 7}, "a key is a string"),
        ({"at": SECOND, "delay": SECOND}, "not both"),
        ({"delay": -1}, "due time"),
        ({"delay": FAR_FUTURE + 1}, "due time"),
        ({"at": -1}, "due time"),
        ({"at": FAR_FUTURE + 1}, "due time"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": 1 << 63}, "timeout"),
        ({"expires": 0}, "expires"),
        ({"expires": 1 << 63}, "expires"),
        ({"attempts": 0}, "attempts"),
        ({"attempts": ATTEMPTS_LIMIT + 1}, "attempts"),
        ({"after": (ID,)}, "itself"),
        ({"after": (b"short",)}, "16 bytes"),
        ({"after": tuple(new_id() for _ in range(PARENTS_LIMIT + 1))}, "1,000"),
        ({"after": (new_id(),), "parent_died": "panic"}, "parent_died"),
    ],
)
def test_a_bad_job_is_refused_with_the_reason(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        check_new_job(a_job(**options))
    with pytest.raises(BadInput, match=reason):  # among others that differ from it in nothing else
        check_new_jobs([a_job(), a_job(**options), a_job()])


def test_a_payload_has_a_limit() -> None:
    with pytest.raises(PayloadTooLarge, match="1,048,577 bytes"):
        check_new_job(a_job(body=bytes(PAYLOAD_LIMIT + 1)))
    with pytest.raises(PayloadTooLarge):
        check_new_jobs([a_job(), a_job(body=bytes(PAYLOAD_LIMIT + 1))])
    assert check_result(None) is None
    assert check_result(bytes(PAYLOAD_LIMIT)) == bytes(PAYLOAD_LIMIT)
    with pytest.raises(PayloadTooLarge, match="the result"):
        check_result(bytes(PAYLOAD_LIMIT + 1))


texts = st.text(max_size=40) | st.builds(
    lambda unit, times, tail: unit * times + tail,
    st.sampled_from(["x", "é", "€", "😀", "a😀", "\ud800"]),
    st.integers(900, 20_000),
    st.text(max_size=3),
)


@given(message=texts, traceback=texts)
def test_a_failure_fits_its_bounds_and_keeps_the_useful_end(message: str, traceback: str) -> None:
    clipped = clip_failure(Failure(error="a.A", message=message, traceback=traceback))
    assert len(clipped.message.encode()) <= MESSAGE_LIMIT
    assert len(clipped.traceback.encode()) <= TRACEBACK_LIMIT
    spelled_message = message.encode(errors="backslashreplace").decode()
    spelled_traceback = traceback.encode(errors="backslashreplace").decode()
    assert spelled_message.startswith(clipped.message)
    assert spelled_traceback.endswith(clipped.traceback.removeprefix("...\n"))
    if len(spelled_message.encode()) <= MESSAGE_LIMIT:
        assert clipped.message == spelled_message
    else:
        assert len(clipped.message.encode()) > MESSAGE_LIMIT - 4
    if len(spelled_traceback.encode()) <= TRACEBACK_LIMIT:
        assert clipped.traceback == spelled_traceback
    else:
        assert clipped.traceback.startswith("...\n")
        assert len(clipped.traceback.encode()) > TRACEBACK_LIMIT - 4


def test_a_short_failure_is_left_as_it_is() -> None:
    failure = Failure(kind="timeout", error="a.A", message="no", traceback="here", attempt=3, number=7)
    assert clip_failure(failure) == failure
