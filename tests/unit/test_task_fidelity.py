"""What would come back as something else is refused, as an argument and as a result; what only looks so is
not."""

import enum
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import wraps
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import (  # noqa: UP035
    AbstractSet,
    Any,
    Collection,
    Dict,
    FrozenSet,
    List,
    NamedTuple,
    NoReturn,
    Set,
    Tuple,
    TypedDict,
)
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import msgspec
import pytest

from tidemill.model.errors import BadArguments, BadInput, Unencodable
from tidemill.task import codec
from tidemill.task.definition import Definition
from tidemill.task.signature import Signature

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Colour(enum.Enum):
    RED = "red"


class Size(enum.StrEnum):
    BIG = "big"


class Point(msgspec.Struct):
    x: int
    note: Any = None


class Fleeting(msgspec.Struct, eq=False):
    """Two of them are never equal."""

    x: int
    note: Any = None


class Row(msgspec.Struct, array_like=True):
    x: int


@dataclass
class Order:
    note: Any = None
    total: float = 0
    colour: Colour = Colour.RED
    items: list[int] = field(default_factory=list)
    size: str = ""
    id: UUID = field(default_factory=uuid4)


@dataclass
class Base:
    x: int


@dataclass
class Derived(Base):
    y: int = 0


class Pair(NamedTuple):
    x: int
    note: Any = None


class Table(TypedDict):
    x: int


class Model:
    """As pydantic's. Its fields have aliases; one is left out of dumps; `==` does not look at classes."""

    model_fields = {"name": None, "secret": None}  # noqa: RUF012

    def __init__(self, name: Any, secret: str = "") -> None:
        self.name = name
        self.secret = secret

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and other.name == self.name

    __hash__ = None  # type: ignore[assignment]

    def model_dump(self, *, mode: str, by_alias: bool, round_trip: bool) -> dict[str, Any]:
        assert mode == "json"
        assert round_trip
        return {"Name" if by_alias else "name": self.name}

    @classmethod
    def model_validate(cls, value: Any) -> "Model":
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict) or "Name" not in value:
            raise ValueError("a Model has a Name")
        return cls(value["Name"])


class Special(Model):
    """A subclass, passed where its base is annotated."""


class Look:
    """Like a model, with neither fields nor an `__eq__`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        return {"name": self.name}

    @classmethod
    def model_validate(cls, value: Any) -> "Look":
        return value if isinstance(value, cls) else cls(value["name"])


class Alike(Look):
    """Its subclass."""


def taking(kind: Any) -> Signature:
    def function(x: Any) -> None: ...

    function.__annotations__["x"] = kind
    return Signature("shop.f", function)


def there_and_back(kind: Any, value: object) -> Any:
    signature = taking(kind)
    _, kwargs = signature.decode(signature.encode((), {"x": value}))
    args, _ = signature.decode(signature.encode((value,), {}))
    assert type(args[0]) is type(kwargs["x"])
    return args[0]


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.row("A13")
@pytest.mark.parametrize(
    ("kind", "value", "back"),
    [
        (list, [1, (2, "a")], [1, [2, "a"]]),
        (List, [1, {"a": None}], [1, {"a": None}]),  # noqa: UP006
        (Tuple, (1, 2), (1, 2)),  # noqa: UP006
        (Dict, {"a": (1, 2)}, {"a": [1, 2]}),  # noqa: UP006
        (set, {1, 2}, {1, 2}),
        (frozenset, {1}, frozenset({1})),
        (AbstractSet[int], frozenset({1}), {1}),
        (Sequence[int], (1, 2), [1, 2]),
        (Iterable, [1], [1]),
        (dict[str, int], Counter("aa"), {"a": 2}),
        (dict[Colour, int], {"red": 1}, {Colour.RED: 1}),
        (set[Colour], ["red"], {Colour.RED}),
        (Colour, "red", Colour.RED),
        (str, Size.BIG, "big"),
        (float, 3, 3.0),
        (Decimal, 1.5, Decimal("1.5")),
        (bytes, bytearray(b"x"), b"x"),
        (Pair, (1, [2]), Pair(1, [2])),
        (tuple[int, Any], (1, (2,)), (1, [2])),
        (Table, {"x": 1}, {"x": 1}),
        (Point, {"x": 1, "note": (1,)}, Point(1, [1])),
        (datetime, datetime(2025, 10, 26, 2, 30, tzinfo=BERLIN), datetime(2025, 10, 26, 0, 30, tzinfo=UTC)),
        (Model, Model("a"), Model("a")),
        (list[Model], [Model("a")], [Model("a")]),
    ],
)
def test_what_an_annotation_makes_of_a_value_is_no_difference(kind: Any, value: object, back: object) -> None:
    found = there_and_back(kind, value)
    assert (found, type(found)) == (back, type(back))


def test_fields_may_hold_what_their_annotations_make_of_it() -> None:
    given = Order(total=1, colour="red", items=(1, 2), size=Size.BIG)  # type: ignore[arg-type]
    found = there_and_back(Order, given)
    assert found == Order(None, 1.0, Colour.RED, [1, 2], "big", given.id)
    assert there_and_back(Order, {"total": 1}).total == 1.0  # whatever id its factory makes


@pytest.mark.parametrize("value", [Fleeting(1), Look("a")])
def test_objects_that_equal_nothing_are_compared_by_what_they_hold(value: Any) -> None:
    assert codec.encode(there_and_back(type(value), value)) == codec.encode(value)


def test_a_row_may_be_given_as_a_list() -> None:
    assert there_and_back(Row, [1]) == Row(1)


@pytest.mark.row("A13")
@pytest.mark.parametrize(
    "kind", [list, List, Sequence, Iterable, Collection, list[Any], "list[object]", List[Any]]  # noqa: UP006
)  # fmt: skip
@pytest.mark.parametrize(
    "value", [NOW, {1}, uuid4(), b"x", Colour.RED, float("nan"), Point(1), {1: 2}, Decimal("1.5")]
)
def test_an_open_list_takes_plain_values_only(kind: Any, value: object) -> None:
    with pytest.raises(Unencodable, match="argument 'x' would come back as something else: "):
        taking(kind).encode(([1, [value]],), {})


@pytest.mark.parametrize("kind", [dict, Dict, Mapping, dict[str, Any]])  # noqa: UP006
@pytest.mark.parametrize("value", [NOW, {1}, Colour.RED, float("inf")])
def test_an_open_dict_takes_plain_values_only(kind: Any, value: object) -> None:
    with pytest.raises(Unencodable, match=r"something else: \['a'\]: "):
        taking(kind).encode(({"a": value},), {})


@pytest.mark.parametrize("kind", [set, frozenset, Set, FrozenSet, AbstractSet, tuple, Tuple])  # noqa: UP006
def test_open_sets_and_tuples_take_plain_values_only(kind: Any) -> None:
    with pytest.raises(Unencodable, match="would come back as something else"):
        taking(kind).encode((frozenset({NOW}),), {})


@pytest.mark.row("A13")
@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (Order, Order(note=NOW), r"\.note: a datetime as a str"),
        (Order, Order(note=[{"a": Colour.RED}]), r"\.note\[0\]\['a'\]: a Colour as a str"),
        (Order, {"note": NOW}, r"\.note: a datetime as a str"),
        (Order, Order(note=float("nan")), r"\.note: a float as a NoneType"),
        (Fleeting, Fleeting(1, NOW), r"\.note: a datetime as a str"),
        (list[Point], [Point(1), Point(1, {2})], r"\[1\]\.note: a set as a list"),
        (Pair, Pair(1, NOW), r"\[1\]: a datetime as a str"),
        (Table, {"x": 1, "y": 2}, "its keys: 2 items as 1"),
        (dict, {1: 2}, r"its keys\[0\]: a int as a str"),
        (Model, Special("a"), "a Special as a Model"),
        (list[Model], [Special("a")], r"\[0\]: a Special as a Model"),
        (Model, Model("a", secret="b"), r"\.secret: a str of another value"),
        (Model, Model(NOW), r"\.name: a datetime as a str"),
        (Look, Alike("a"), "a Alike as a Look"),
    ],
)
def test_what_would_come_back_as_something_else_is_refused(kind: Any, value: object, says: str) -> None:
    with pytest.raises(Unencodable, match=f"shop.f: argument 'x' would come back as something else: {says}"):
        taking(kind).encode((value,), {})


def test_a_subclass_of_a_dataclass_is_not_cut_down() -> None:
    with pytest.raises(BadArguments, match="got `Derived`"):
        taking(Base).encode((Derived(1, 2),), {})


def test_the_argument_is_named_wherever_it_stands() -> None:
    def function(a: int, *rest: Point, b: Order | None = None, **more: Point) -> None: ...

    signature = Signature("shop.f", function)
    for args, kwargs, name in (
        ((1, Point(1), Point(1, NOW)), {}, "rest"),
        ((1,), {"b": Order(NOW)}, "b"),
        ((1,), {"c": Point(1, NOW)}, "c"),
    ):
        with pytest.raises(Unencodable, match=f"argument {name!r} would come back"):
            signature.encode(args, kwargs)


def test_what_is_nested_too_deep_to_compare_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(700):
        deep = [deep]
    with pytest.raises(BadInput, match=r"deep|recursion"):
        taking(list).encode((deep,), {})


@pytest.mark.parametrize("kind", [UUID | str, datetime | date, "UUID | str", Point | Base])
def test_a_union_that_cannot_be_told_apart_is_explained(kind: Any) -> None:
    with pytest.raises(
        BadInput, match="'x' cannot travel as JSON: Type unions may not contain more than one"
    ):
        taking(kind).encode(("a",), {})


def test_a_generic_that_cannot_be_made_is_explained() -> None:
    with pytest.raises(BadArguments, match=r"Iterable cannot be made from JSON: .* such as list\[int\]"):
        taking(Iterable[int]).encode(([1],), {})


@pytest.mark.parametrize("text", ["no type at all", "datetime.moon", "Nowhere"])
def test_an_annotation_that_cannot_be_resolved_is_said(text: str) -> None:
    with pytest.raises(BadInput, match=r"an annotation of shop\.f cannot be resolved"):
        taking(text).encode((1,), {})


def test_names_that_are_defined_further_down_need_no_quotes() -> None:
    """Since Python 3.14, and before with the import that promised it."""
    promised = "" if sys.version_info >= (3, 14) else "from __future__ import annotations\n"
    names: dict[str, Any] = {}
    exec(f"{promised}def f(x: Later, many: list[Later] | None = None) -> Later: ...", names)
    signature = Signature("shop.f", names["f"])
    with pytest.raises(BadInput, match=r"an annotation of shop\.f cannot be resolved: name 'Later'"):
        signature.check()
    names["Later"] = Point
    body = signature.encode((Point(1), [Point(2)]), {})
    args, kwargs = signature.decode(body)
    assert (list(args), kwargs) == ([Point(1), [Point(2)]], {})
    assert signature.decode_result(signature.encode_result(Point(3))) == Point(3)


# -- results ---------------------------------------------------------------------------------------


def giving(kind: Any = None, *, annotated: bool = True) -> Definition:
    def function() -> Any: ...

    function.__annotations__ = {"return": kind} if annotated else {}
    return Definition(function, name="shop.f")


UNTYPED = giving(annotated=False)


@pytest.mark.row("A13")
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (str, "a"),
        (int, 2**70),
        (bool, True),
        (float, 1.5),
        (datetime, NOW),
        (set[int], {1, 2}),
        (Order, Order(note=[1], total=2.0)),
        (Model, Model("a")),
        (list[Point], [Point(1)]),
        (int | None, 3),
        (Any, {"a": [1, None]}),
        (object, [1.5]),
    ],
)
def test_results_come_back_by_the_return_annotation(kind: Any, value: object) -> None:
    definition = giving(kind)
    found = definition.signature.decode_result(definition.encode_result(value))
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("kind", [None, "None", Any, object, int | None, "Order | None"])
def test_none_is_stored_as_nothing_where_it_may_be_the_result(kind: Any) -> None:
    assert giving(kind).encode_result(None) is None
    assert UNTYPED.encode_result(None) is None


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (int, "abc", "Expected `int`, got `str`"),
        (int, None, "Expected `int`, got `null`"),
        (int, True, "Expected `int`, got `bool`"),
        (str, NOW, "Expected `str`, got `datetime`"),
        (str, "\ud800", "cannot be encoded"),
        (None, 5, "Expected `null`, got `int`"),
        (Order, None, "Expected `object`, got `null`"),
        (Model, None, "a Model has a Name"),
        (float, float("nan"), "Expected `float`, got `null`"),
        (dict, {"a": NOW}, "would come back as something else: ..a..: a datetime as a str"),
        (list, [{1}], "would come back as something else"),
        (Order, Order(note=NOW), "a datetime as a str"),
        (Model, Special("a"), "a Special as a Model"),
        (Any, NOW, "a datetime would come back as something else"),
        (Any, object(), "a object would come back as something else"),
    ],
)
def test_a_result_that_is_not_what_was_promised_fails(kind: Any, value: object, says: str) -> None:
    with pytest.raises(Unencodable, match=rf"the result of shop\.f, a \S+: .*{says}"):
        giving(kind).encode_result(value)


@pytest.mark.parametrize("value", [NOW, {1, 2}, [{1}], float("nan"), Point(1), {1: 2}, b"x"])
@pytest.mark.parametrize("kind", [None, "Nowhere", UUID | str, Iterable[int], Thread | None])
def test_a_result_without_a_type_must_be_plain(kind: Any, value: object) -> None:
    definition = UNTYPED if kind is None else giving(kind)
    with pytest.raises(Unencodable, match=r"the result of shop\.f, a \S+: (a|nan)"):
        definition.encode_result(value)
    assert definition.encode_result({"a": (1, "b")}) == b'{"a":[1,"b"]}'
    assert definition.signature.decode_result(b'{"a":[1,"b"]}') == {"a": [1, "b"]}


def test_a_return_annotation_that_cannot_be_resolved_is_no_matter_of_the_arguments() -> None:
    def function(x: int) -> "Nowhere":  # type: ignore[name-defined]  # noqa: F821
        ...

    assert Signature("shop.f", function).encode((), {"x": 1}) == b'[[],{"x":1}]'


def test_the_result_of_an_async_def_is_what_it_returns() -> None:
    async def function() -> str: ...  # type: ignore[empty-body]

    definition = Definition(function, name="shop.f")
    assert definition.encode_result("a") == b'"a"'
    with pytest.raises(Unencodable, match="Expected `str`, got `int`"):
        definition.encode_result(1)


def test_a_coroutine_as_a_result_is_explained() -> None:
    async def inner() -> str: ...  # type: ignore[empty-body]

    @wraps(inner)
    def outer() -> Any:
        return inner()

    definition = Definition(outer, name="shop.f")
    assert definition.runs_in == "thread"
    with pytest.raises(Unencodable, match="it is a coroutine: a function that wraps an async def must"):
        definition.encode_result(outer())


@pytest.mark.parametrize(
    "kind", [Thread, complex, list[Thread], dict[str, Thread], tuple[int, Thread], Iterator[int], range]
)
def test_a_result_type_that_can_never_be_stored_is_refused_at_the_decorator(kind: Any) -> None:
    with pytest.raises(BadInput, match=r"shop\.f: its result, \S+, cannot travel as JSON: return plain"):
        giving(kind)


@pytest.mark.parametrize("kind", [NoReturn, Thread | None, Iterable[int], "Nowhere", Mapping[str, int], Any])
def test_one_of_which_some_value_can_be_stored_is_not(kind: Any) -> None:
    giving(kind)


def test_a_result_type_that_is_defined_further_down_is_refused_when_a_worker_starts() -> None:
    definition = giving("Later")
    function: Any = definition.function
    function.__globals__["Later"] = Thread
    try:
        with pytest.raises(BadInput, match=r"its result, threading\.Thread"):
            definition.signature.check()
    finally:
        del function.__globals__["Later"]


@pytest.mark.parametrize(
    ("kind", "value"),
    [(Path, Path("/a/b")), (PurePosixPath, PurePosixPath("c")), (list[Path], [Path("d")])],
)
def test_paths_come_back_as_paths(kind: Any, value: object) -> None:
    assert there_and_back(kind, value) == value
    result = giving(kind)
    assert result.signature.decode_result(result.encode_result(value)) == value


def test_a_path_is_not_made_of_anything_else() -> None:
    with pytest.raises(BadArguments, match="Expected `Path`, got `int`"):
        taking(Path).encode((5,), {})
    with pytest.raises(Unencodable, match="a PosixPath would come back as something else: annotate it"):
        taking(Any).encode((Path("a"),), {})


@pytest.mark.parametrize("value", [(1, 2), [(1,)], {"a": (1,)}])
def test_a_tuple_without_an_annotation_is_refused(value: object) -> None:
    with pytest.raises(Unencodable, match="a tuple would come back as something else: annotate it"):
        taking(Any).encode((value,), {})
