"""A queue's options, and what they refuse."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.engine.shared.flat_options import flat_options
from tidemill.model.errors import BadInput
from tidemill.model.jobs.retry import Retry
from tidemill.model.plain import is_plain_queue
from tidemill.model.queues.queue import COUNT_LIMIT, WEIGHT_LIMIT, Keep, Limit, QueueOptions, Rate
from tidemill.model.queues.spoken import words_of_option
from tidemill.model.time import HOUR, MILLISECOND, MINUTE, SECOND, Span


@pytest.mark.parametrize(
    ("text", "count", "window"),
    [
        ("100/m", 100, MINUTE),
        ("50/10s", 50, 10 * SECOND),
        ("5/h", 5, HOUR),
        ("1/d", 1, 24 * HOUR),
        ("3/250ms", 3, 250 * MILLISECOND),
        (" 7 / 1.5 m ", 7, 90 * SECOND),
        ("2/.5s", 2, 500 * MILLISECOND),
    ],
)
def test_a_rate_is_read_from_text(text: str, count: int, window: Span) -> None:
    rate = Rate.parse(text)
    assert (rate.count, rate.window) == (count, window)


@given(count=st.integers(1, COUNT_LIMIT), length=st.integers(1, 999), unit=st.sampled_from(["ms", "s", "m"]))
def test_every_written_rate_is_read_back(count: int, length: int, unit: str) -> None:
    micro = {"ms": MILLISECOND, "s": SECOND, "m": MINUTE}[unit]
    rate = Rate.parse(f"{count}/{length}{unit}")
    assert (rate.count, rate.window) == (count, length * micro)


@pytest.mark.parametrize("text", ["100/m smooth", " 100 / 1 m   smooth "])
def test_a_smooth_rate_is_read_from_text(text: str) -> None:
    assert Rate.parse(text) == Rate(100, per=60, smooth=True)


@pytest.mark.parametrize("smooth", [None, 1, "yes"])
def test_smooth_is_yes_or_no(smooth: Any) -> None:
    with pytest.raises(BadInput, match="smooth is True or False"):
        Rate(100, smooth=smooth)


def test_a_rate_stays_as_it_is() -> None:
    rate = Rate(3, per=7)
    assert Rate.parse(rate) is rate


@pytest.mark.parametrize(
    "text",
    [
        "",
        "smooth",
        "100 smooth",
        "100/fortnight",
        "100/msmooth",
        "100/m even",
        "5",
        "5/",
        "/s",
        "5/x",
        "5/1",
        "5/.s",
        "-5/s",
        "5.5/s",
        "5/s/s",
        "5/1..0s",
        None,
        5,
        b"5/s",
    ],
)
def test_what_is_not_a_rate_is_refused(text: Any) -> None:
    with pytest.raises(BadInput, match="is not a rate"):
        Rate.parse(text)


@pytest.mark.parametrize("text", ["0/s", f"{COUNT_LIMIT + 1}/s", "5/0s", "5/0.5ms", "5/367d"])
def test_a_rate_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="a rate"):
        Rate.parse(text)


def test_a_window_that_is_no_number_is_refused() -> None:
    with pytest.raises(BadInput):
        Rate(1, per=float("nan"))


@pytest.mark.parametrize("concurrency", [0, -1, COUNT_LIMIT + 1])
def test_concurrency_is_at_least_one(concurrency: int) -> None:
    with pytest.raises(BadInput, match="pause it"):
        Limit(concurrency=concurrency)
    with pytest.raises(BadInput, match="pause it"):
        QueueOptions(concurrency=concurrency)


def test_a_limit_that_limits_nothing_is_false() -> None:
    assert not Limit()
    assert Limit(concurrency=1)
    assert Limit(rate=Rate(1))


@pytest.mark.parametrize(
    "keep", [{"age": -1.0}, {"age": float("inf")}, {"count": -1}, {"count": COUNT_LIMIT + 1}]
)
def test_retention_has_bounds(keep: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        Keep(**keep)


def test_keeping_nothing_means_a_count_of_zero() -> None:
    assert Keep(count=0).nothing
    assert not Keep(count=1).nothing
    assert not Keep(age=0.0).nothing
    assert not Keep().nothing


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"weights": {"a": 2}}, "fair_by"),
        ({"weights": {"a": 2}, "per_key": Limit()}, "fair_by"),
        ({"limits": {"a\x1fb": Limit()}}, "control characters"),
        ({"limits": {None: Limit()}}, "a key is a string, not NoneType"),
        ({"limits": {f"k{n}": Limit() for n in range(1_001)}}, "at most 1000 keys have limits of their own"),
        ({"weights": {"a": 2}, "limits": {"a": Limit()}}, "fair_by"),
        ({"weights": {"a": 0}, "fair_by": "key"}, "weight of 'a'"),
        ({"weights": {"a": WEIGHT_LIMIT + 1}, "fair_by": "key"}, "weight of 'a'"),
        ({"weights": {"a\x1fb": 1}, "fair_by": "key"}, "control characters"),
        ({"per_task": {"two words": Limit(concurrency=1)}}, "task name"),
        ({"fair_by": "task"}, "fair_by"),
        ({"timeout": 0.0}, "longer than 0 s"),
        ({"timeout": -1.0}, "between 0 and"),
        ({"rate": Rate(1), "concurrency": 0}, "concurrency"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        QueueOptions(**options)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("limits", {}, "none"),
        ("weights", {}, "none"),
        ("weights", {"gold": 6, "free": 1}, "gold: 6; free: 1"),
        ("limits", {"acme": Limit(concurrency=5), "ours": Limit()}, "acme: 5 at once; ours: no limit"),
        ("concurrency", None, "no limit"),
    ],
)
def test_options_are_said_in_words(name: str, value: Any, words: str) -> None:
    assert words_of_option(name, value) == words


def test_lanes_are_cut_by_key_for_fairness_or_a_limit_per_key() -> None:
    assert not QueueOptions().keyed
    assert not QueueOptions(per_key=Limit()).keyed
    assert QueueOptions(fair_by="key").keyed
    assert QueueOptions(per_key=Limit(concurrency=1)).keyed


def test_a_task_without_a_real_limit_has_none() -> None:
    options = QueueOptions(per_task={"a": Limit(concurrency=2), "b": Limit()})
    assert options.limit_of_task("a") == Limit(concurrency=2)
    assert options.limit_of_task("b") is None
    assert options.limit_of_task("c") is None


def test_options_come_back_from_json() -> None:
    options = QueueOptions(
        concurrency=3,
        rate=Rate(5, per=0.5),
        per_key=Limit(concurrency=1),
        per_task={"a": Limit(rate=Rate(1, per=60))},
        per_worker=Limit(concurrency=4),
        fair_by="key",
        weights={"gold": 3},
        retry=Retry(attempts=2, on=("a.A",)),
        keep_completed=Keep(count=0),
        keep_body=False,
    )
    assert msgspec.json.decode(msgspec.json.encode(options), type=QueueOptions) == options


def test_bad_options_are_refused_in_json_too() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"concurrency":0}', type=QueueOptions)


@pytest.mark.parametrize(
    ("options", "plain"),
    [
        (QueueOptions(), True),
        (QueueOptions(per_worker=Limit(concurrency=1), keep_body=False), True),
        (QueueOptions(per_task={"t": Limit()}, limits={"k": Limit()}, per_key=Limit()), True),
        (QueueOptions(concurrency=1), False),
        (QueueOptions(fair_by="key"), False),
        (QueueOptions(limits={"k": Limit(concurrency=1)}), False),
        (QueueOptions(per_task={"t": Limit(concurrency=1)}), False),
    ],
)
def test_engines_are_given_the_same_word_of_what_is_plain(options: QueueOptions, plain: bool) -> None:
    flat = flat_options(options, Keep())
    assert is_plain_queue(options) is plain
    assert (flat.shaped or flat.limited) is not plain
