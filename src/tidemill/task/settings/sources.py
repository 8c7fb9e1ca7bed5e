"""Where values come from besides arguments: the environment, a .env file, a pyproject.toml."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidemill.model.errors import BadInput
from tidemill.model.names import nearest
from tidemill.task.settings.setting import Setting

DOTENV, PYPROJECT = ".env", "pyproject.toml"
_SQLITE = "sqlite:///"
FILE_LIMIT = 1 << 20
"""More bytes than any file of settings has; keeps a device or a log from being read by mistake."""

_MAY_HAVE_TABLE = re.compile(
    r"""tool["'\s]*\.["'\s]*tidemill|^\s*\[\s*["']?tool["']?\s*\]|^\s*["']?tool["']?\s*=""", re.MULTILINE
)
"""Every way to begin a table `tool.tidemill`. The word alone is in each project that depends on us."""

Text = tuple[object, str]
"""A value as written, and its source."""


def from_environment(
    entry: Setting[Any], environ: Mapping[str, str], where: str = "environment"
) -> Text | None:
    """The value in a variable, or in the file that a `_FILE` variable names. An empty variable is none."""
    text = environ.get(entry.variable)
    if entry.file_variable is None or not (file := environ.get(entry.file_variable)):
        return (text, f"{where} {entry.variable}") if text else None
    if text:
        raise BadInput(f"{where}: {entry.variable} and {entry.file_variable} are both set; keep one of them")
    source = f"{where} {entry.file_variable}"
    return _read(Path(file), source).strip(), source


class Project:
    """The files of a project: the nearest pyproject.toml from the working folder upwards, and the nearest
    .env on the way to it. Without a pyproject.toml only the working folder's own .env counts."""

    def __init__(self, folder: Path | None, table: Mapping[str, Setting[Any]]) -> None:
        here = Path.cwd() if folder is None else folder
        pyproject = next(
            (path for each in (here, *here.parents) if (path := each / PYPROJECT).is_file()), None
        )
        top = here if pyproject is None else pyproject.parent
        way = [each for each in (here, *here.parents) if each == top or top in each.parents]
        self._dotenv = next((path for each in way if (path := each / DOTENV).is_file()), None)
        self._variables = parse_dotenv(self._dotenv) if self._dotenv else {}
        self._pyproject = pyproject
        self._chosen = _tool_table(pyproject, table) if pyproject else {}

    def look_up(self, entry: Setting[Any]) -> Text | None:
        """The value in .env, else in pyproject.toml."""
        if found := from_environment(entry, self._variables, str(self._dotenv)):
            return _beside(found[0], self._dotenv), found[1]
        if entry.name in self._chosen:
            source = f"{self._pyproject} [tool.tidemill] {entry.name}"
            return _beside(self._chosen[entry.name], self._pyproject), source
        return None


def _beside(value: object, file: Path | None) -> object:
    """A relative SQLite file in a project's settings is beside those settings, wherever the program runs."""
    if file is None or not isinstance(value, str) or not value.startswith(_SQLITE):
        return value
    path = value.removeprefix(_SQLITE)
    return value if not path or path.startswith(("/", "?")) else f"{_SQLITE}{file.resolve().parent}/{path}"


def parse_dotenv(path: Path) -> dict[str, str]:
    """NAME=value lines. `export` in front, quotes around and comments are understood; nothing is expanded."""
    variables = {}
    for number, written in enumerate(_read(path, str(path)).splitlines(), 1):
        line = written.strip().removeprefix("export ").strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"{path}, line {number}: write NAME=value")
        variables[name.strip()] = _unquoted(value.strip(), path, number)
    return variables


def _unquoted(value: str, path: Path, number: int) -> str:
    if value[:1] not in ("'", '"'):
        return value.partition(" #")[0].strip()
    text, quote, rest = value[1:].partition(value[0])
    if not quote or (rest.strip() and not rest.strip().startswith("#")):
        raise BadInput(f"{path}, line {number}: the quotes around the value do not match")
    return text


def _tool_table(path: Path, table: Mapping[str, Setting[Any]]) -> dict[str, Any]:
    text = _read(path, str(path))
    if not _MAY_HAVE_TABLE.search(text):
        return {}
    import tomllib  # with the reading 35 ms, which each process of most projects need not spend

    try:
        chosen = tomllib.loads(text).get("tool", {}).get("tidemill", {})
    except tomllib.TOMLDecodeError as wrong:
        raise BadInput(f"{path} cannot be read: {wrong}") from None
    for name in chosen:
        if name not in table:
            raise BadInput(f"{path}: [tool.tidemill] has no setting {name!r}{nearest(name, table)}")
    return dict(chosen)


def _read(path: Path, source: str) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_LIMIT + 1)
        if len(content) > FILE_LIMIT:
            raise BadInput(f"{source}: {path} is larger than {FILE_LIMIT:,} bytes; is it the right file?")
        return content.decode()
    except OSError as error:
        raise BadInput(f"{source}: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{source}: {path} is not UTF-8 text") from None
