"""The generated part of ARCHITECTURE.md: a list of all modules, and links for the names in the prose.

The prose is written by hand and stands before `MARK`. It names a class or a function as [`Exchange`],
without saying where that is. Everything after the mark is made here: what each module is, by the first
paragraph of its docstring, and a target for each such name. So modules can move and the page follows.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

MARK = "<!-- From here on the page is made by `./dev _docs` from the docstrings of the modules. -->"

SOURCE = "src/tidemill"
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
NAMED = re.compile(r"\[`(\w+)`\](?!\()")
"""A name in the prose without a target of its own."""


class UnknownName(Exception):
    """The prose names what no module defines, or what more than one defines."""


def architecture_page(text: str, root: Path) -> str:
    """The page with its generated part made anew. `text` is the page as it is, `root` the checkout."""
    prose, mark, _ = text.partition(MARK)
    if not mark:
        raise ValueError(f"ARCHITECTURE.md has lost the line {MARK}")
    return f"{prose}{MARK}\n\n" + "\n".join((*_packages(root), *_targets(prose, root))) + "\n"


def modules(root: Path) -> list[Path]:
    """Every module of the product."""
    return sorted((root / SOURCE).rglob("*.py"))


def summary(module: Path) -> str:
    """The first paragraph of a module's docstring, as one line."""
    return _read(module).summary


def _packages(root: Path) -> Iterator[str]:
    contents: dict[Path, list[Path]] = defaultdict(list)
    for module in modules(root):
        contents[module.parent].append(module)
    for folder in sorted(contents):
        yield from _package(folder, contents[folder], root)


def _package(folder: Path, members: list[Path], root: Path) -> Iterator[str]:
    name = folder.relative_to((root / SOURCE).parent).as_posix()
    yield f"### {name}\n"
    yield summary(folder / "__init__.py") + "\n"
    rows = [_row(module, root) for module in members if module.stem != "__init__"]
    if rows:
        yield "| module | what it is |"
        yield "|---|---|"
        yield from rows
        yield ""


def _row(module: Path, root: Path) -> str:
    about = summary(module).replace("|", "\\|")
    return f"| [{module.stem}]({module.relative_to(root).as_posix()}) | {about} |"


def _targets(prose: str, root: Path) -> Iterator[str]:
    defined = _definitions(root)
    for name in sorted(set(NAMED.findall(prose))):
        places = defined.get(name, [])
        if len(places) != 1:
            found = ", ".join(place.relative_to(root).as_posix() for place in places) or "nowhere"
            raise UnknownName(f"ARCHITECTURE.md names [`{name}`], which is defined in: {found}")
        yield f"[`{name}`]: {places[0].relative_to(root).as_posix()}"


def _definitions(root: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = defaultdict(list)
    for module in modules(root):
        for name in _read(module).names:
            found[name].append(module)
    return found


class _Contents(NamedTuple):
    summary: str
    names: tuple[str, ...]
    """The classes and functions that the module defines."""


@cache
def _read(module: Path) -> _Contents:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    paragraph = (ast.get_docstring(tree) or "").partition("\n\n")[0]
    defined = (node for node in tree.body if isinstance(node, DEFINITIONS))
    return _Contents(" ".join(paragraph.split()), tuple(node.name for node in defined))
