"""The pages that show the table: .env.example and docs/settings.md."""

from typing import Any

from tidemill.task.settings.setting import Setting
from tidemill.task.settings.table import Settings

_EXAMPLE_HEAD = """\
# Settings of Tidemill, with their defaults. Copy to .env and change what you need.
# Lengths of time: 30 (seconds), 500ms, 30s, 5m, 24h, 7d. Sizes: 65536, 64KiB.
"""

_PAGE_HEAD = """\
# Settings

Generated from the one table of settings in the code; `tidemill config show` prints each value in force and
where it came from.

A setting has one name everywhere: `slots` in `pyproject.toml` and in code, `TIDEMILL_SLOTS` in the
environment, an option where a command has it. Sources, strongest first:

1. an argument in code, or an option of a command
2. the environment: `TIDEMILL_SLOTS`. An empty variable counts as not set
3. `.env`, in the working folder or on the way up to the project's `pyproject.toml`, with the same names
4. `[tool.tidemill]` in the nearest `pyproject.toml`, from the working folder upwards
5. the default

A setting with a file variable may hold a password: `TIDEMILL_URL_FILE=/run/secrets/url` reads the value from
a file. The password in a URL is never shown.

A relative SQLite file named in a `.env` or a `pyproject.toml` is beside that file; elsewhere it is in the
working folder. Options of an engine stand in its URL. SQLite's are `durability` (`full`, the default: on
disk when a call returns; `normal`: a power cut may take the last moments; `off`) and `lock_timeout` (`30`:
how many seconds a call waits while another program holds the file's lock). Those of
[PostgreSQL](guide.md#the-url) and of [Redis](guide.md#redis) are in the guide.

Lengths of time are seconds, or a number with a unit: `500ms`, `30s`, `5m`, `24h`, `7d`. Sizes are bytes, or
`64KiB`, `1MiB`. A retention is an age, a number of jobs, both (`24h 1000000`), or `forever`.

| setting | default | what it means | file |
|---|---|---|---|
"""


def env_example() -> str:
    """A .env with every setting at its default, commented out."""
    return _EXAMPLE_HEAD + "".join(_example(entry) for entry in Settings.table().values())


def settings_page() -> str:
    """The reference for people."""
    return _PAGE_HEAD + "".join(_row(entry) for entry in Settings.table().values())


def _example(entry: Setting[Any]) -> str:
    about = entry.about.replace("`", "")
    file = f"# or, from a file:\n# {entry.file_variable}=/run/secrets/{entry.name}\n" if entry.secret else ""
    value = f'"{entry.default}"' if " " in entry.default else entry.default
    return f"\n# {about}\n# {entry.variable}={value}\n{file}"


def _row(entry: Setting[Any]) -> str:
    default = f"`{entry.default}`" if entry.default else "none"
    file = f"`{entry.file_variable}`" if entry.file_variable else ""
    return f"| `{entry.name}` | {default} | {entry.about} | {file} |\n"
