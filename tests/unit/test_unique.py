"""What is said of uniqueness: what wins, what contradicts, what text arguments make."""

import pytest

from tidemill.model.errors import BadInput
from tidemill.model.jobs.unique import (
    UniqueKey,
    UniqueOptions,
    key_of_call,
    merge_unique,
    replaced_due,
    text_of,
)
from tidemill.model.names import UNIQUE_LIMIT, check_unique

TASK = UniqueOptions(unique=True, parameters=("a",), until="start", on_conflict="refuse", defaults=b"{}")


def test_nothing_said_is_not_unique() -> None:
    assert merge_unique(None, None) is None
    assert merge_unique(TASK, UniqueOptions(unique=False)) is None
    assert merge_unique(UniqueOptions(unique=False), None) is None


def test_the_call_is_stronger_field_by_field() -> None:
    said = merge_unique(TASK, UniqueOptions(on_conflict="existing", text="k"))
    assert said == UniqueOptions(
        unique=True, parameters=("a",), text="k", until="start", on_conflict="existing", defaults=b"{}"
    )
    assert merge_unique(TASK, None) == TASK


def test_what_contradicts_over_both_is_refused() -> None:
    with pytest.raises(BadInput, match="give one of them"):
        merge_unique(TASK, UniqueOptions(period=5))
    with pytest.raises(BadInput, match='on_conflict="replace"'):
        merge_unique(TASK, UniqueOptions(debounce=5))


def test_debounce_and_throttle_are_short_for_others() -> None:
    assert key_of_call(UniqueOptions(debounce=5, debounce_max=9), "k") == UniqueKey(
        key="k", until="start", on_conflict="replace", latest=9
    )
    assert key_of_call(UniqueOptions(throttle=5), "k") == UniqueKey(key="k", period=5)


def test_the_latest_bounds_the_due_time() -> None:
    bounded = UniqueKey(key="k", on_conflict="replace", latest=10)
    assert [replaced_due(bounded, due, 100) for due in (105, 110, 115)] == [105, 110, 110]
    assert replaced_due(UniqueKey(key="k", on_conflict="replace"), 115, 100) == 115


def test_the_text_of_arguments() -> None:
    assert text_of({"b": 1, "a": [1, {"d": 2, "c": 3}]}, ()) == '{"a":[1,{"c":3,"d":2}],"b":1}'
    assert text_of({"a": 1, "b": 2}, ("b", "c")) == '{"b":2,"c":null}'
    long = [text_of({"a": "x" * length}, ()) for length in (500, 501)]
    assert long[0] != long[1]
    assert all(len(check_unique(text)) <= UNIQUE_LIMIT for text in long)
    check_unique(text_of({"a": "\x00\n\x7fé" * 500}, ()))
