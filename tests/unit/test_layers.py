"""The two layers of a queue's options: what is in force."""

from typing import Any

import pytest

from tidemill.model.errors import BadInput
from tidemill.model.queues.layers import (
    Declaration,
    Effective,
    Layers,
    check_fields,
    check_overrides,
    effective,
    fields_of,
    read_fields,
    read_stored,
    with_declaration,
    with_overrides,
    without_declaration,
    without_overrides,
)
from tidemill.model.queues.queue import Keep, Limit, QueueOptions, Rate


def declared(**apps: tuple[int, dict[str, Any]]) -> Layers:
    layers = Layers()
    for app, (at, fields) in apps.items():
        layers = with_declaration(layers, app, Declaration(fields=fields, declared_at=at))
    return layers


def in_force(layers: Layers) -> QueueOptions:
    options, problems = effective(layers)
    assert problems == ()
    return options


def test_nothing_said_is_nothing_in_force() -> None:
    assert effective(Layers()) == Effective(QueueOptions())


def test_the_later_start_counts_field_by_field() -> None:
    layers = declared(shop=(5, {"concurrency": 5}), bill=(3, {"concurrency": 9, "keep_body": False}))
    assert in_force(layers) == QueueOptions(concurrency=5, keep_body=False)


def test_of_two_starts_at_the_same_moment_the_same_one_counts_everywhere() -> None:
    one = declared(a=(5, {"concurrency": 1}), b=(5, {"concurrency": 2}))
    other = declared(b=(5, {"concurrency": 2}), a=(5, {"concurrency": 1}))
    assert in_force(one) == in_force(other) == QueueOptions(concurrency=2)


def test_a_declaration_replaces_the_apps_former_one_unless_it_is_older() -> None:
    layers = declared(shop=(5, {"concurrency": 5, "fair_by": "key"}))
    newer = with_declaration(layers, "shop", Declaration(fields={"fair_by": "key"}, declared_at=6))
    assert in_force(newer) == QueueOptions(fair_by="key")
    assert with_declaration(newer, "shop", layers.declared["shop"]) is newer


def test_null_says_no_limit_and_no_mention_says_nothing() -> None:
    layers = declared(shop=(1, {"concurrency": 5, "rate": {"count": 1}}), bill=(2, {"concurrency": None}))
    assert in_force(layers) == QueueOptions(rate=Rate(1))


def test_settings_of_an_app_are_weaker_than_what_any_app_declares() -> None:
    keep, other = {"keep_completed": {"count": 3}}, {"keep_completed": {"count": 9}}
    layers = with_declaration(
        declared(shop=(1, other)),
        "bill",
        Declaration(defaults=keep, fields={"concurrency": 2}, declared_at=9),
    )
    assert in_force(layers) == QueueOptions(concurrency=2, keep_completed=Keep(count=9))


def test_settings_of_an_app_that_only_uses_a_queue_count_while_no_app_declares_it() -> None:
    uses = Declaration(defaults={"keep_dead": {"count": 3}}, declares=False, declared_at=9)
    layers = with_declaration(Layers(), "bill", uses)
    assert in_force(layers) == QueueOptions(keep_dead=Keep(count=3))
    layers = with_declaration(layers, "shop", Declaration(declared_at=1))
    assert in_force(layers) == QueueOptions()


def test_overrides_count_over_everything_and_go_one_by_one() -> None:
    layers = declared(shop=(1, {"concurrency": 5}))
    layers = with_overrides(layers, {"concurrency": None, "fair_by": "key"}, by="ann", why="", at=7)
    assert in_force(layers) == QueueOptions(fair_by="key")
    assert in_force(without_overrides(layers, ["concurrency"])) == QueueOptions(concurrency=5, fair_by="key")
    assert in_force(without_overrides(layers, None)) == QueueOptions(concurrency=5)
    assert without_overrides(layers, ["rate"]) is layers


def test_a_repeated_override_keeps_its_time_and_another_one_does_not() -> None:
    first = with_overrides(Layers(), {"concurrency": 5}, by="ann", why="", at=7)
    assert with_overrides(first, {"concurrency": 5}, by="ann", why="", at=9) == first
    assert with_overrides(first, {"concurrency": 5}, by="bob", why="", at=9).overrides["concurrency"].at == 9


def test_retirement_is_of_the_declaration_that_was_seen() -> None:
    layers = declared(shop=(5, {"concurrency": 5}))
    assert without_declaration(layers, "shop", 4) is layers
    assert without_declaration(layers, "bill", 5) is layers
    assert without_declaration(layers, "shop", 5) == Layers()


def test_what_another_release_wrote_stays_in_its_layer_and_out_of_force() -> None:
    layers = declared(shop=(5, {"concurrency": 5, "colour": "red", "rate": {"burst": 3}}))
    options, problems = effective(layers)
    assert options == QueueOptions(concurrency=5)
    assert [problem.partition(":")[0] for problem in problems] == ["colour", "rate"]
    assert layers.declared["shop"].fields["colour"] == "red"


@pytest.mark.parametrize(
    ("stored", "options"),
    [
        (b'{"concurrency":5,"rate":"often"}', QueueOptions(concurrency=5)),
        (b'{"concurrency":-1,"fair_by":"key"}', QueueOptions(fair_by="key")),
        (b'{"weights":{"a":2},"fair_by":"moon"}', QueueOptions()),
        (b"[]", QueueOptions()),
        (b"\xff", QueueOptions()),
    ],
)
def test_stored_options_that_cannot_be_read_keep_nobody_from_the_rest(
    stored: bytes, options: QueueOptions
) -> None:
    found = read_stored(stored)
    assert found.options == options
    assert found.problems


def test_the_fields_of_options_make_the_same_options() -> None:
    options = QueueOptions(
        concurrency=5,
        rate=Rate(5, per=10),
        per_key=Limit(rate=Rate(1)),
        per_task={"t": Limit(concurrency=1)},
        weights={"a": 2},
        keep_dead=Keep(age=5.0),
    )
    assert read_fields(fields_of(options)) == Effective(options)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"concurency": 5}, "did you mean 'concurrency'"),
        ({"concurrency": 0}, "concurrency lies between 1"),
        ({"concurrency": "5"}, "concurrency"),
        ({"rate": "5/s"}, "rate"),
        ({"rate": {"count": 0}}, "between 1"),
        ({"weights": {"a": 2}}, "by key"),
        ({"weights": {"a": 0}, "fair_by": "key"}, "weight of 'a'"),
        ({"fair_by": "tenant"}, "fair_by"),
    ],
)
def test_fields_that_cannot_be_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        check_fields(fields)
    with pytest.raises(BadInput, match=words):
        check_overrides(Layers(), fields)


def test_an_override_may_rest_on_what_is_declared() -> None:
    layers = declared(shop=(1, {"per_key": {"concurrency": 2}}))
    check_overrides(layers, {"weights": {"a": 2}})
    with pytest.raises(BadInput, match="contradicts"):
        check_overrides(with_overrides(layers, {"weights": {"a": 2}}, by="", why="", at=1), {"per_key": None})


def test_an_older_problem_does_not_refuse_another_override() -> None:
    layers = declared(shop=(1, {"colour": "red"}))
    check_overrides(layers, {"concurrency": 2})
