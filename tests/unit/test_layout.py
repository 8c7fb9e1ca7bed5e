"""The layout of the product: class names are unique, packages stay small, names use the glossary's words."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ROOT / "src" / "tidemill"
MODULES = sorted(PRODUCT.rglob("*.py"))

MOST_MODULES = 16
"""In one package, without `__init__`: as many as a reader can hold in the head."""

CLASS = re.compile(r"^ *class (\w+)[(:]", re.MULTILINE)
FUNCTION = re.compile(r"^ *(?:async )?def (\w+)[(\[]", re.MULTILINE)
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

OLD_WORDS = frozenset(
    {
        *("beat", "beats", "beaten"),  # heartbeat
        *("teller", "telling", "hearing", "heard"),  # emit, receive
        *("introduce", "introduction"),  # publish
        *("dial", "ear"),  # connect, listen connection
        *("insistence", "forsaken", "farewell"),  # retry until answered, gave up
        *("incarnation", "seat", "inquest", "loss", "losses"),  # worker process, respawn, blame, lost runs
        *("crew", "lifeline"),  # workers, parent pipe
        *(
            "stretch",
            "stretches",
            "ripple",
            "looks",
            "floors",
        ),  # ranges, dependents, late commits, scanned until
    }
)
"""Words that the glossary has replaced. They stand in no name of a module, class or function."""

OLD_NAMES = frozenset({"line", "look", "place", "places", "post", "tell", "told"})
"""The same for words that are old only as a whole name: `Line` is a connection, `LogLine` is a line."""


def test_no_package_has_more_modules_than_a_reader_can_hold() -> None:
    sizes = Counter(module.parent for module in MODULES if module.stem != "__init__")
    large = {
        folder.relative_to(PRODUCT).as_posix() for folder, modules in sizes.items() if modules > MOST_MODULES
    }
    assert large == set()


def test_a_class_name_stands_for_one_class() -> None:
    counts = Counter(name for module in MODULES for name in classes_of(module))
    assert {name for name, classes in counts.items() if classes > 1} == set()


def test_names_use_the_words_of_the_glossary() -> None:
    names = {name for module in MODULES for name in (module.stem, *classes_of(module), *functions_of(module))}
    words = {word.lower() for name in names for word in WORD.findall(name)}
    assert (words & OLD_WORDS) | ({name.lower() for name in names} & OLD_NAMES) == set()


def classes_of(module: Path) -> list[str]:
    """Those inside functions and other classes too."""
    return CLASS.findall(module.read_text(encoding="utf-8"))


def functions_of(module: Path) -> list[str]:
    """Methods too."""
    return FUNCTION.findall(module.read_text(encoding="utf-8"))
