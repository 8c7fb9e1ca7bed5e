"""Named SQL: loads statements from `.sql` files.

There is one file per facet and dialect, with the same names in each dialect, so that a diff of two files
shows the dialect and nothing else. A statement begins with a line `-- name: claim_take`; comment lines
below it are its legend.
"""

import re

from tidemill.engine.files import folder_of

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


class Statements:
    """The statements of one file, as attributes."""

    def __init__(self, source: str, texts: dict[str, str]) -> None:
        self._source = source
        self._names = tuple(texts)
        vars(self).update(texts)  # an attribute that is there costs nothing to look up; __getattr__ does

    def __getattr__(self, name: str) -> str:
        raise AttributeError(f"{self._source} has no statement named {name}")

    def items(self) -> list[tuple[str, str]]:
        """Every (name, text): a test prepares them all."""
        return [(name, getattr(self, name)) for name in self._names]


def load_statements(package: str, name: str) -> Statements:
    """The statements of `sql/<name>.sql` in a package."""
    source = f"sql/{name}.sql"
    parts = _NAME.split((folder_of(package) / source).read_text("utf-8"))
    texts = dict(zip(parts[1::2], map(_strip, parts[2::2]), strict=True))
    if len(texts) != len(parts) // 2:
        raise ValueError(f"{package} {source} names a statement twice")
    return Statements(source, texts)


def _strip(text: str) -> str:
    lines = [line.split(" -- ")[0].rstrip() for line in text.splitlines()]
    return "\n".join(line for line in lines if line and not line.startswith("--")).rstrip("; \n")
