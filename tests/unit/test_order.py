"""The order of the tests themselves."""

from pathlib import Path

import pytest

from tests.order import LONG, dealt

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("processes", [2, 3, 4, 8])
@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_nothing_is_left_out_and_each_part_begins_with_its_long_ones(processes: int, count: int) -> None:
    items = [f"t{number}" for number in range(count)]
    long = items[3:9]
    found = dealt(long, items, processes)
    assert sorted(found) == sorted(items)
    if count == 100:
        size = -(-count // processes)
        firsts = [found[at : at + 6 // processes] for at in range(0, count, size)]
        assert all(item in long for first in firsts for item in first)


def test_the_files_are_there() -> None:
    assert [file for file in LONG if not (ROOT / file).is_file()] == []
