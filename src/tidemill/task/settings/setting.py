"""One setting: its name, default, rule and meaning, and how its value may be shown."""

import re
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, NoReturn, Protocol, TypeVar, overload

from tidemill.model.errors import BadInput

PREFIX = "TIDEMILL_"

T = TypeVar("T")

HIDDEN = "***"
_PASSWORD = re.compile(r"(://[^:@/]*:).*@")
_PASSWORD_OPTION = re.compile(r"(?i)([?&][a-z_]*(?:password|passwd|secret|token)=)[^&#]*")


class BadValue(ValueError):
    """Raised by a rule. Its text completes the sentence "slots is ..."."""


Rule = Callable[[object], T]
"""Reads a value from text, or checks one that a program gave; `BadValue` says what it should be."""


class Found(NamedTuple):
    """A value and where it came from."""

    value: Any
    source: str


class SettingHolder(Protocol):
    """What settings are read from: `Settings`."""

    _found: dict[str, Found]


class Setting(Generic[T]):
    """A descriptor: `settings.slots` is the value, `Settings.slots` this description of it."""

    name: str

    def __init__(self, default: str, rule: Rule[T], about: str, *, secret: bool = False) -> None:
        self.default = default
        """As it would be written in a file; "" stands for nothing."""
        self.rule = rule
        self.about = about
        self.secret = secret
        """A URL that may hold a password: it is shown without it, and may come from a file of its own."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, holder: None, owner: type) -> "Setting[T]": ...

    @overload
    def __get__(self, holder: SettingHolder, owner: type) -> T: ...

    def __get__(self, holder: SettingHolder | None, owner: type) -> "Setting[T] | T":
        if holder is None:
            return self
        value: T = holder._found[self.name].value
        return value

    def __set__(self, holder: SettingHolder, value: object) -> NoReturn:
        raise AttributeError(f"settings do not change once loaded: {self.name}")

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return PREFIX + self.name.upper()

    @property
    def file_variable(self) -> str | None:
        """The variable that names a file with the value; secrets only."""
        return f"{self.variable}_FILE" if self.secret else None

    def read(self, value: object, source: str) -> Found:
        """The value by its rule, or `BadInput` that names the setting and the source."""
        try:
            return Found(self.rule(value), source)
        except BadValue as wrong:
            got = "" if self.secret else f", not {value!r}"
            raise BadInput(f"{source}: {self.name} is {wrong}{got}") from None

    def shown(self, value: object) -> str:
        """The value for people, without what is secret."""
        if value is None or value == ():
            return ""
        if self.secret:
            return without_password(str(value))
        if type(value) is tuple:
            return ",".join(map(str, value))
        return self.written(value)

    @staticmethod
    def written(value: object) -> str:
        """A value as it would be written in a file."""
        if isinstance(value, float):
            return f"{value:g}s"
        if hasattr(value, "age") and hasattr(value, "count"):  # a Keep
            parts = (value.age and f"{value.age:g}s", value.count)
            return " ".join(str(part) for part in parts if part is not None) or "forever"
        return str(value)


def without_password(url: str) -> str:
    """A URL that may be shown: passwords in it, and options that look like one, are hidden."""
    return _PASSWORD_OPTION.sub(rf"\1{HIDDEN}", _PASSWORD.sub(rf"\1{HIDDEN}@", url))
