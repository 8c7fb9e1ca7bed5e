"""Which names are allowed."""

from collections.abc import Callable
from typing import Any

import pytest

from tidemill.model.errors import BadInput
from tidemill.model.names import KEY_LIMIT, check_key, check_namespace, check_queue, check_task


@pytest.mark.parametrize("name", ["a", "tidemill", "a_1", "a" * 40])
def test_namespaces(name: str) -> None:
    assert check_namespace(name) == name


@pytest.mark.parametrize("name", ["", "A", "1a", "_a", "a-b", "a.b", "a" * 41, "a\n", "ä", None, b"a"])
def test_other_namespaces_are_refused(name: Any) -> None:
    with pytest.raises(BadInput, match="is not a namespace"):
        check_namespace(name)


@pytest.mark.parametrize("name", ["a", "1", "Mail", "eu.mail:high-1_x", "a" * 100])
def test_queue_names(name: str) -> None:
    assert check_queue(name) == name


@pytest.mark.parametrize("name", ["", ".a", "-a", "a b", "a/b", "a" * 101, "a\n", "ä", "*", None, 1])
def test_other_queue_names_are_refused(name: Any) -> None:
    with pytest.raises(BadInput, match="is not a queue name"):
        check_queue(name)


@pytest.mark.parametrize("name", ["t", "app.tasks.mail", "größe", "a<locals>.b", "a" * 200])
def test_task_names(name: str) -> None:
    assert check_task(name) == name


@pytest.mark.parametrize("name", ["", "a b", "a\tb", "a\n", "a\x00", "a\x1fb", "a\x7f", "a" * 201, None])
def test_other_task_names_are_refused(name: Any) -> None:
    with pytest.raises(BadInput, match="is not a task name"):
        check_task(name)


@pytest.mark.parametrize("key", [None, "", "tenant 7", "größe", "a" * KEY_LIMIT])
def test_keys(key: str | None) -> None:
    assert check_key(key) == key


@pytest.mark.parametrize("key", ["a" * (KEY_LIMIT + 1), "a\x1fb", "\x00", "\n", "\ud800", 5, b"a"])
def test_other_keys_are_refused(key: Any) -> None:
    with pytest.raises(BadInput, match="a key"):
        check_key(key)


@pytest.mark.parametrize("check", [check_namespace, check_queue, check_task])
def test_a_refusal_is_not_remembered_as_a_pass(check: Callable[[str], str]) -> None:
    for _ in range(2):
        with pytest.raises(BadInput):
            check("not a name")


@pytest.mark.parametrize("check", [check_queue, check_task])
def test_text_that_no_engine_can_store_is_refused(check: Callable[[str], str]) -> None:
    with pytest.raises(BadInput):
        check("a\udc80b")
