"""What travels, and comes back as it was."""

import enum
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.errors import BadArguments, BadInput, BadPayload, Unencodable
from tidemill.task.signature import Signature


class Colour(enum.Enum):
    RED = "red"


class Point(msgspec.Struct):
    x: int


@dataclass
class Order:
    id: UUID
    total: Decimal
    when: datetime


class Model:
    """As pydantic's: known by its two methods."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and other.name == self.name

    __hash__ = None  # type: ignore[assignment]

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        return {"name": self.name}

    @classmethod
    def model_validate(cls, value: Any) -> "Model":
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            raise ValueError("a Model has a name")
        return cls(value["name"])


def everything(
    at: datetime,
    day: date,
    length: timedelta,
    order: Order,
    point: Point,
    colour: Colour,
    blob: bytes,
    many: list[Point],
    by_name: dict[str, Decimal],
    pair: tuple[int, str],
    maybe: UUID | None,
    model: Model,
    free: Any,
) -> None: ...


NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
VALUES = (
    NOW, date(2026, 3, 1), timedelta(seconds=90), Order(uuid4(), Decimal("1.10"), NOW), Point(3), Colour.RED,
    b"\x00\xff", [Point(1), Point(2)], {"a": Decimal("2.5")}, (1, "a"), None, Model("m"),
    {"k": [1, "two", None]},
)  # fmt: skip


@pytest.mark.row("A13")
def test_values_come_back_by_their_annotations() -> None:
    signature = Signature("t", everything)
    args, kwargs = signature.decode(signature.encode(VALUES, {}))
    assert tuple(args) == VALUES
    assert kwargs == {}
    names = signature.positional
    args, kwargs = signature.decode(signature.encode((), dict(zip(names, VALUES, strict=True))))
    assert (args, kwargs) == ([], dict(zip(names, VALUES, strict=True)))


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def free(a: Any, b: Any = 1, *rest: Any, c: Any = None, **more: Any) -> None: ...


@given(
    args=st.lists(plain, min_size=1, max_size=4),
    kwargs=st.dictionaries(
        st.text(min_size=1).filter(lambda name: name not in ("a", "b")), plain, max_size=3
    ),
)
def test_plain_values_come_back_the_same(args: list[Any], kwargs: dict[str, Any]) -> None:
    signature = Signature("t", free)
    try:
        body = signature.encode(args, kwargs)
    except Unencodable:  # half a character
        return
    found, named = signature.decode(body)
    assert (list(found), named) == (args, kwargs)


def typed(name: str, count: int = 1, *, ratio: float = 0.5, flags: list[bool] | None = None) -> None: ...


@pytest.mark.row("A13")
@pytest.mark.parametrize(
    ("args", "kwargs", "says"),
    [
        ((), {}, "missing a required argument: 'name'"),
        (("a", 1, 2), {}, "too many positional arguments"),
        (("a",), {"nmae": 1}, "unexpected keyword argument 'nmae'"),
        (("a",), {"name": "b"}, "multiple values for argument 'name'"),
        ((1,), {}, "argument 'name': Expected `str`, got `int`"),
        (("a", "1"), {}, "argument 'count': Expected `int`, got `str`"),
        (("a", True), {}, "Expected `int`, got `bool`"),
        ((NOW,), {}, "Expected `str`, got `datetime`"),
        (("a",), {"flags": [True, 1]}, "Expected `bool`, got `int`"),
        (("a",), {"ratio": float("nan")}, "Expected `float`, got `null`"),
        (("a",), {"ratio": float("inf")}, "Expected `float`, got `null`"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    args: tuple[Any, ...], kwargs: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadArguments) as caught:
        Signature("t", typed).encode(args, kwargs)
    assert says in str(caught.value)


@pytest.mark.row("A13")
@pytest.mark.parametrize(
    "value", [{1, 2}, object(), NOW, b"x", {1: 2}, float("nan"), [[Point(1)]], Colour.RED]
)
def test_without_an_annotation_only_plain_values_travel(value: object) -> None:
    with pytest.raises(Unencodable, match="argument 'a'"):
        Signature("t", free).encode((value,), {})


def test_a_value_in_an_open_container_must_be_plain_too() -> None:
    def open_list(items: list[Any], table: dict[str, object]) -> None: ...

    with pytest.raises(Unencodable):
        Signature("t", open_list).encode(([NOW],), {"table": {}})
    assert Signature("t", open_list).encode(([1, (2, 3)],), {"table": {"a": None}})


def test_nesting_without_end_is_refused() -> None:
    knot: list[Any] = []
    knot.append(knot)
    with pytest.raises(Unencodable):
        Signature("t", free).encode((knot,), {})


def test_a_type_without_json_form_is_refused_by_name() -> None:
    def strange(lock: "type[int]") -> None: ...

    with pytest.raises(BadInput, match="lock"):
        Signature("t", strange).encode((int,), {})


def test_an_annotation_may_name_a_class_defined_further_down() -> None:
    signature = Signature("t", early)
    args, _ = signature.decode(signature.encode((Later(1),), {}))
    assert args[0] == Later(1)


def early(value: "Later") -> None: ...


class Later(msgspec.Struct):
    n: int


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"[[],{},1]",
        b"[1,2]",
        b"[[],{}]",
        b'[["a"],{"nope":1}]',
        b'[["a","b"],{}]',
        b"\xff",
    ],
)
def test_a_body_that_does_not_fit_is_a_bad_payload(body: bytes) -> None:
    with pytest.raises(BadPayload):
        Signature("t", typed).decode(body)


def test_the_decoder_for_the_usual_call_does_not_hide_others() -> None:
    signature = Signature("t", typed)
    for _ in range(2):
        assert list(signature.decode(b'[["a"],{}]')[0]) == ["a"]
        assert list(signature.decode(b'[["a",2],{}]')[0]) == ["a", 2]
        assert signature.decode(b'[["a"],{"count":3}]') == (["a"], {"count": 3})
        with pytest.raises(BadPayload):
            signature.decode(b'[["a","2"],{}]')
