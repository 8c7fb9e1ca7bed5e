"""The fingerprint of a failure: what an operator would call the same is the same."""

import pytest

from tidemill.model.errors import BadInput
from tidemill.model.jobs.fingerprint import (
    GroupName,
    as_recorded,
    fingerprint_of,
    own_frames,
    plain_message,
    read_group,
)
from tidemill.model.jobs.job import MESSAGE_LIMIT, TRACEBACK_LIMIT, Failure


def frame(file: str, function: str, line: int = 1) -> str:
    return f'  File "{file}", line {line}, in {function}\n    work()\n'


def traceback(*frames: str) -> str:
    return "Traceback (most recent call last):\n" + "".join(frames) + "ValueError: no\n"


MESSAGES = {
    "order 17 is gone": "order 99871 is gone",
    "no user 6f1ee0a5-1f27-4c8e-9d3e-0d6f6b0e8a11": "no user 00000000-0000-7000-8000-000000000001",
    "cannot open /srv/app/1/a.txt": "cannot open /srv/app/2/b.txt",
    "'abc'": "'the other key'",
    "took 3.5 s of 10": "took 12 s of 10",
    "card 'x' of \"Ann\" refused": "card 'y' of \"Bob\" refused",
    "GET https://a.example/1?x=2 failed": "GET https://b.example/2 failed",
    "<Order object at 0x7f3a>": "<Order object at 0x99ff1>",
    "blob 9f86d081884c7d65 missing": "blob e3b0c44298fc1c14 missing",
    "mail to ann@example.org bounced": "mail to bob.b@example.com bounced",
    "two  spaces\n and lines": "two spaces and lines",
}


@pytest.mark.parametrize(("one", "other"), MESSAGES.items())
def test_what_differs_from_job_to_job_does_not_count(one: str, other: str) -> None:
    assert plain_message(one) == plain_message(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("card refused", "card expired"),
        ("cannot read 1", "cannot write 1"),
        ("can't open the user's file", "can't close the user's file"),
        ("deadbeef", "feedface"),
    ],
)
def test_other_words_are_another_message(one: str, other: str) -> None:
    assert plain_message(one) != plain_message(other)


def test_lines_and_folders_do_not_count_and_functions_do() -> None:
    now = traceback(frame("/srv/1/shop/mail.py", "send", 10))
    moved = traceback(frame("/srv/2/shop/mail.py", "send", 99))
    other = traceback(frame("/srv/1/shop/mail.py", "bill", 10))
    one, same, another = (fingerprint_of(Failure(error="E", traceback=text)) for text in (now, moved, other))
    assert one == same != another


def test_frames_of_libraries_are_left_out() -> None:
    text = traceback(
        frame("/usr/lib/python3.11/asyncio/tasks.py", "wait_for"),
        frame("/app/shop/mail.py", "send"),
        frame("/app/.venv/lib/python3.11/site-packages/httpx/client.py", "get"),
        frame("/home/me/tidemill/worker/running/on_loop.py", "run"),
        frame("<frozen importlib._bootstrap>", "_find"),
        frame("C:\\\\shop\\\\mail.py", "connect"),
    )
    assert own_frames(text) == ["mail.py:send", "mail.py:connect"]


def test_the_first_five_frames_count() -> None:
    frames = [frame("a.py", f"f{number}") for number in range(9)]
    assert own_frames(traceback(*frames)) == [f"a.py:f{number}" for number in range(5)]


def test_without_own_frames_others_count() -> None:
    assert own_frames(traceback(frame("/usr/lib/python3.11/json/decoder.py", "decode"))) == [
        "decoder.py:decode"
    ]
    assert own_frames("") == []


@pytest.mark.parametrize("kind", ["expired", "crash", "lost", "parent"])
def test_what_the_engine_causes_has_its_kind(kind: str) -> None:
    assert fingerprint_of(Failure(kind=kind, message="exit code 7")) == kind  # type: ignore[arg-type]


def test_where_a_timeout_struck_does_not_count() -> None:
    here, there = (
        Failure(
            kind="timeout", error="TimeoutError", message="over 5 s", traceback=traceback(frame("a.py", at))
        )
        for at in ("here", "there")
    )
    assert fingerprint_of(here) == fingerprint_of(there)
    assert fingerprint_of(here) != fingerprint_of(Failure(error="TimeoutError", message="over 5 s"))


def test_the_whole_texts_count_though_they_are_cut() -> None:
    long = traceback(frame("mine.py", "send"), *(frame("/x/site-packages/deep.py", "f") for _ in range(999)))
    failure = as_recorded(Failure(error="E", message="m" * 9_999, traceback=long))
    assert len(failure.traceback) <= TRACEBACK_LIMIT
    assert len(failure.message) <= MESSAGE_LIMIT
    assert "mine.py" not in failure.traceback
    assert failure.fingerprint == fingerprint_of(Failure(error="E", message="m" * 9_999, traceback=long))
    assert as_recorded(failure) == failure, "who records it again changes nothing"


def test_a_fingerprint_that_is_none_is_made_anew() -> None:
    odd = Failure(error="E", fingerprint="a/b")
    assert as_recorded(odd).fingerprint == fingerprint_of(Failure(error="E"))


def test_odd_texts_do_no_harm() -> None:
    for text in ("\ud800", "'" * 5_000, "/" * 5_000, "0x" * 2_000, "a@" * 2_000, "\\" * 4_000):
        assert len(fingerprint_of(Failure(message=text, traceback=text))) == 12


def test_a_group_has_a_name() -> None:
    assert read_group("a/b/expired") == GroupName("a/b", "expired")
    assert str(GroupName("shop.send", "3f9a1c2b44d0")) == "shop.send/3f9a1c2b44d0"
    with pytest.raises(BadInput, match=r"shop\.send/3f9a"):
        read_group("shop.send")
