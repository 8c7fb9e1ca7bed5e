"""Documentation that can be checked by a machine is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docgen.architecture import MARK, UnknownName, architecture_page, modules, summary
from docgen.pages import pages

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```|(?<!\[)`[^`\n]*`(?!\])", re.MULTILINE | re.DOTALL)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

LONGEST_SUMMARY = 150
MOST_WORDS = 40


def links_of(page: Path) -> list[tuple[Path, str]]:
    """The file that each link within the repository leads to, and the heading there, if it names one."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    links = [inline or reference for inline, reference in LINK.findall(text)]
    split = [link.partition("#") for link in links if not ELSEWHERE.match(link)]
    return [(page.parent / path if path else page, heading) for path, _, heading in split]


def anchors_of(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_to_a_heading_of_it(page: Path) -> None:
    links = links_of(page)
    missing = [str(path) for path, _ in links if not path.exists()]
    assert not missing, f"{page.relative_to(ROOT)} links to files that are not there: {missing}"
    lost = [
        f"{path.name}#{heading}"
        for path, heading in links
        if heading and path.suffix == ".md" and heading not in anchors_of(path)
    ]
    assert not lost, f"{page.relative_to(ROOT)} links to headings that are not there: {lost}"


# Pages made from code


def test_the_pages_made_from_code_are_up_to_date() -> None:
    stale = [page for page, made in pages().items() if (ROOT / page).read_text(encoding="utf-8") != made]
    assert not stale, "run `./dev _docs`"


def test_every_module_says_in_a_line_what_it_is() -> None:
    lengths = {str(module.relative_to(ROOT)): len(summary(module)) for module in modules(ROOT)}
    assert {name: length for name, length in lengths.items() if not 0 < length <= LONGEST_SUMMARY} == {}


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """A checkout of a small product, in which `Twice` is defined in two places."""
    package = tmp_path / "src" / "tidemill"
    (package / "room").mkdir(parents=True)
    (package / "__init__.py").write_text('"""All of it."""\n')
    (package / "room" / "__init__.py").write_text('"""A room."""\n')
    (package / "room" / "chair.py").write_text(
        '"""To sit\non.\n\nMore."""\nclass Chair: ...\nclass Twice: ...\n'
    )
    (package / "room" / "table.py").write_text('"""To eat at."""\nclass Twice: ...\n')
    return tmp_path


def test_names_in_the_prose_follow_their_modules(product: Path) -> None:
    before = f"Sit on a [`Chair`].\n\n{MARK}\nold\n"
    after = architecture_page(before, product)
    assert after.startswith("Sit on a [`Chair`].\n")
    assert "| [chair](src/tidemill/room/chair.py) | To sit on. |" in after
    assert after.endswith("[`Chair`]: src/tidemill/room/chair.py\n")
    assert architecture_page(after, product) == after


@pytest.mark.parametrize(("name", "where"), [("Sofa", "nowhere"), ("Twice", "chair.py, .*table.py")])
def test_a_name_that_is_not_defined_once_is_refused(product: Path, name: str, where: str) -> None:
    with pytest.raises(UnknownName, match=where):
        architecture_page(f"[`{name}`]\n{MARK}\n", product)


# Words


def test_the_glossary_stays_short_and_in_order() -> None:
    entries = re.findall(
        r"^- \*\*(.+?)\*\*", (ROOT / "docs/glossary.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert 0 < len(entries) <= MOST_WORDS
    assert entries == sorted(set(entries), key=str.lower)
