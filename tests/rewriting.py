"""How the text of an engine is changed where a bug is planted: its statements, schema or scripts.

`put` is `setattr` of whoever plants it: of a `MonkeyPatch`, where the bug is taken out again, or for good.
Each place must be there exactly once: a bug that no longer fits the code must not pass unseen.
"""

from collections.abc import Callable
from typing import TypeAlias

from tidemill.engine.migrations import Script
from tidemill.engine.shared.statements import Statements

Put: TypeAlias = Callable[[object, str, object], None]


def in_statement(put: Put, statements: Statements, name: str, old: str, new: str) -> None:
    """Of the SQLite engine."""
    put(statements, name, replaced(getattr(statements, name), old, new, where=name))


def in_schema(put: Put, script: str, old: str, new: str) -> None:
    """Of the PostgreSQL engine: one script of its schema."""
    from tidemill.engines.postgres.db import schema

    first, *later = schema.MIGRATIONS
    texts = dict(first.scripts)
    texts[script] = replaced(texts[script], old, new, where=script)
    changed = first._replace(scripts=tuple(Script(name, sql) for name, sql in texts.items()))
    put(schema, "MIGRATIONS", [changed, *later])


def in_script(put: Put, name: str, old: str, new: str) -> None:
    """Of the Redis engine."""
    from tidemill.engines.redis.db import scripts

    right = scripts.source
    changed = replaced(right(name), old, new, where=f"{name}.lua")
    put(scripts, "source", lambda each: changed if each == name else right(each))
    scripts.script.cache_clear()


def replaced(text: str, old: str, new: str, *, where: str) -> str:
    """The text with its one place changed."""
    found = text.count(old)
    assert found == 1, f"{where} contains {old!r} {found} times: renew this planted bug"
    return text.replace(old, new)
