"""docs/guarantees.md names proofs that exist, and every checker is a proof of something."""

import re
from pathlib import Path

import pytest

from tests.chaos.checkers import CHECKERS

PAGE = Path(__file__).parents[2] / "docs" / "guarantees.md"
PROOF = re.compile(r"\[`(\w+)`\]\(([^)]+)\)")
ROW = re.compile(r"^\| (?!promise|---)(.+) \| (.+) \| (.+) \|$", re.MULTILINE)

ROWS = ROW.findall(PAGE.read_text().partition("## The latest figures")[0])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:50])
def test_every_promise_has_a_proof(row: tuple[str, str, str]) -> None:
    proofs = PROOF.findall(row[2])
    assert proofs
    for name, link in proofs:
        text = (PAGE.parent / link).read_text()
        assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), f"{link} has no {name}"


def test_every_checker_proves_something() -> None:
    """Except those that only watch over the run itself."""
    named = {name for row in ROWS for name, _ in PROOF.findall(row[2])}
    assert set(CHECKERS) - named <= {"nobody_runs_what_nobody_asked_for", "ends_as_its_code_says"}
