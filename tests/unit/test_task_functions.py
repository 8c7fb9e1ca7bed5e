"""Which callables can be tasks, where they run, and which of them are one."""

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import msgspec
import pytest

from tidemill import Tidemill
from tidemill.model.errors import BadArguments, BadInput, Unencodable
from tidemill.task.definition import Definition
from tidemill.task.registry import Registry


class Thing(msgspec.Struct):
    x: int


def plain(a: int, b: str = "x") -> str:
    return f"{a}{b}"


async def on_the_loop(thing: "Thing") -> int:
    return thing.x


def sync_around(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def async_around(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Adder:
    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self, thing: "Thing") -> "Thing":
        return Thing(thing.x + self.n)

    def bound(self, x: int) -> int:
        return self.n + x


class LoopAdder:
    async def __call__(self, x: int) -> int:
        return x


# -- loop or thread --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "is_async"),
    [
        (plain, False),
        (on_the_loop, True),
        (sync_around(on_the_loop), False),
        (async_around(plain), True),
        (functools.partial(plain, 1), False),
        (functools.partial(on_the_loop, Thing(1)), True),
        (functools.partial(functools.partial(on_the_loop), Thing(1)), True),
        (functools.partial(sync_around(on_the_loop)), False),
        (functools.lru_cache(plain), False),
        (Adder(1), False),
        (LoopAdder(), True),
        (functools.partial(LoopAdder(), 1), True),
        (Adder(1).bound, False),
        (staticmethod(on_the_loop), True),
    ],
)
def test_what_is_called_decides_where_it_runs(function: Any, is_async: bool) -> None:
    definition = Definition(function, name="t")
    assert (definition.is_async, definition.runs_in) == (is_async, "loop" if is_async else "thread")


async def test_async_callables_can_be_awaited() -> None:
    assert await Definition(LoopAdder(), name="t").function(3) == 3
    assert await Definition(functools.partial(on_the_loop, Thing(4)), name="t").function() == 4


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("function", [generator, async_generator, functools.partial(generator)])
def test_generators_are_refused(function: Any) -> None:
    with pytest.raises(BadInput, match=r"^t is a generator, .* return a list"):
        Definition(function, name="t")


# -- signatures ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function", [sync_around(on_the_loop), async_around(sync_around(on_the_loop)), Adder(1)]
)
def test_annotations_are_those_of_what_is_wrapped_or_called(function: Any) -> None:
    definition = Definition(function, name="t")
    args, _ = definition.decode(1, definition.encode((Thing(1),), {}))
    assert list(args) == [Thing(1)]
    with pytest.raises(BadArguments, match="argument 'thing'"):
        definition.encode((1,), {})


def test_a_wrapper_may_declare_a_signature_of_its_own() -> None:
    wrapper = sync_around(plain)
    only_b = inspect.Parameter("b", inspect.Parameter.KEYWORD_ONLY, annotation="Thing")
    wrapper.__signature__ = inspect.Signature([only_b])  # type: ignore[attr-defined]
    definition = Definition(wrapper, name="t")
    assert definition.encode((), {"b": Thing(1)}) == b'[[],{"b":{"x":1}}]'
    with pytest.raises(BadArguments, match="too many positional"):
        definition.encode((1,), {})


def test_a_partial_has_the_parameters_that_are_left() -> None:
    definition = Definition(functools.partial(plain, 1), name="t")
    assert definition.signature.positional == ["b"]
    with pytest.raises(BadArguments, match="Expected `str`"):
        definition.encode((2,), {})
    assert definition.encode_result("1x") == b'"1x"'
    with pytest.raises(Unencodable, match="Expected `str`"):
        definition.encode_result(1)


def test_what_has_no_known_parameters_is_refused() -> None:
    class Odd:
        __signature__ = "nonsense"

        def __call__(self) -> None: ...

    with pytest.raises(BadInput, match="its parameters are not known"):
        Definition(Odd(), name="t")


# -- names and kinds -------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [functools.partial(plain, 1), Adder(1), "".join])
def test_what_has_no_name_needs_one(function: Any) -> None:
    with pytest.raises(BadInput, match=r"has no name of its own .* by name="):
        Definition(function)
    assert Definition(function, name="t").name == "t"


@pytest.mark.parametrize(
    ("function", "says"),
    [(Adder, "not the class Adder"), (classmethod(sync_around(plain)), "not classmethod"), (3, "not int")],
)
def test_a_task_is_a_function(function: Any, says: str) -> None:
    with pytest.raises(BadInput, match=f"a task is a function, {says}"):
        Definition(function, name="t")


def test_methods_are_refused() -> None:
    app = Tidemill("sqlite://")
    with pytest.raises(BadInput, match=r"K\.m is a method, and a job has no object .* staticmethod"):

        class K:
            @app.task
            def m(self, x: int) -> None: ...

    with pytest.raises(BadInput, match="is a method"):

        class L:
            @app.task(name="l")
            @sync_around
            def m(cls, x: int) -> None: ...  # noqa: N805, RUF100


def test_functions_of_a_class_that_need_no_object_are_tasks() -> None:
    app = Tidemill("sqlite://")

    class K:
        @app.task
        @staticmethod
        def one(x: int) -> int:
            return x

        @staticmethod
        @app.task
        def two(x: int) -> int:
            return x

    assert (K.one(1), K.two(2)) == (1, 2)
    assert K.one.name.endswith("K.one")
    assert Definition(Adder(2).bound, name="t").function(1) == 3


def test_a_function_outside_of_classes_may_call_its_parameter_self() -> None:
    def local(self: int) -> None: ...

    assert Definition(local).signature.positional == ["self"]


def test_a_task_that_is_decorated_again_stands_for_its_function() -> None:
    app, other = Tidemill("sqlite://"), Tidemill("sqlite://")
    first = app.task(on_the_loop)
    second = app.task(name="again", priority=1)(first)
    assert second.definition.function is on_the_loop
    assert (second.name, second.definition.runs_in) == ("again", "loop")
    assert other.task(first).name == first.name
    assert app.task(first).definition.function is on_the_loop
    assert Definition(functools.partial(first, Thing(1)), name="t").is_async


# -- two of one name -------------------------------------------------------------------------------


def first_same() -> Callable[..., Any]:
    def same() -> None: ...

    return same


def numbered(n: int) -> Callable[[], int]:
    @sync_around
    def same() -> int:
        return n

    return same


def in_module(lines: str) -> dict[str, Any]:
    """What a module of this text holds."""
    names: dict[str, Any] = {"__name__": "shop", "around": sync_around}
    exec(compile(lines, "/srv/shop.py", "exec"), names)
    return names


TWO = "def same(): ...\nfirst = same\ndef same(): ...\n"
TWO_WRAPPED = "@around\ndef same(): ...\nfirst = same\n@around\ndef same(): ...\n"


@pytest.mark.parametrize("lines", [TWO, TWO_WRAPPED])
def test_two_functions_of_one_name_in_one_file_are_refused(lines: str) -> None:
    module, registry = in_module(lines), Registry()
    registry.add(Definition(module["first"]))
    with pytest.raises(BadInput, match=r"two tasks named 'shop\.same'"):
        registry.add(Definition(module["same"]))


@pytest.mark.parametrize("lines", [TWO, TWO_WRAPPED])
def test_a_module_that_is_imported_twice_is_no_conflict(lines: str) -> None:
    registry = Registry()
    for module in (in_module(lines), in_module(lines)):
        registry.add(Definition(module["same"]))
    assert registry.find("shop.same") is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (first_same(), first_same()),
        (numbered(1), numbered(2)),
        (functools.partial(plain, 1), functools.partial(plain, 2)),
        (Adder(1), Adder(2)),
        (Adder(1).bound, Adder(2).bound),
        (sync_around(plain), sync_around(on_the_loop)),
    ],
)
def test_what_may_differ_is_refused_under_one_name(one: Any, other: Any) -> None:
    registry = Registry()
    registry.add(Definition(one, name="t"))
    registry.add(Definition(one, name="t"))  # the very same object
    with pytest.raises(BadInput, match="two tasks named 't'"):
        registry.add(Definition(other, name="t"))
