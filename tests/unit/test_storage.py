"""What deserves a warning, and what it says."""

import pytest

from tidemill.model.storage import (
    LONG_HELD,
    LOST_DATA_SHOWN,
    MANY_BEHIND,
    MANY_DEAD,
    MUCH_FREE,
    MUCH_HELD,
    HolderKind,
    Part,
    Storage,
    StorageHolder,
    warnings_of,
)
from tidemill.model.time import SECOND


def held_by(holder: StorageHolder) -> Storage:
    return Storage(bytes=0, parts=[], holders=[holder])


def made_of(part: Part) -> Storage:
    return Storage(bytes=part.bytes, parts=[part])


@pytest.mark.parametrize(
    ("holder", "warns"),
    [
        (StorageHolder(kind=HolderKind.TRANSACTION, name="7", age=LONG_HELD - 1), False),
        (StorageHolder(kind=HolderKind.TRANSACTION, name="7", age=LONG_HELD), True),
        (StorageHolder(kind=HolderKind.TRANSACTION, name="7", age=SECOND, behind=10 * MANY_BEHIND), False),
        (StorageHolder(kind=HolderKind.TRANSACTION, name="7", behind=MANY_BEHIND - 1), False),
        (StorageHolder(kind=HolderKind.TRANSACTION, name="7", behind=MANY_BEHIND), True),
        (StorageHolder(kind=HolderKind.PREPARED, name="x", age=LONG_HELD), True),
        (StorageHolder(kind=HolderKind.SLOT, name="s", bytes=MUCH_HELD[HolderKind.SLOT] - 1), False),
        (StorageHolder(kind=HolderKind.SLOT, name="s", bytes=MUCH_HELD[HolderKind.SLOT]), True),
        (StorageHolder(kind=HolderKind.READER, bytes=MUCH_HELD[HolderKind.READER] - 1), False),
        (StorageHolder(kind=HolderKind.READER, bytes=MUCH_HELD[HolderKind.READER]), True),
    ],
)
def test_who_holds_back_for_long_is_named(holder: StorageHolder, warns: bool) -> None:
    found = warnings_of(held_by(holder))
    assert [warning.kind for warning in found] == ["held"] * warns


@pytest.mark.parametrize(
    ("storage", "kinds"),
    [
        (Storage(bytes=0, parts=[], rolled_back=LOST_DATA_SHOWN - 1), ["rolled back"]),
        (Storage(bytes=0, parts=[], rolled_back=LOST_DATA_SHOWN), []),
        (Storage(bytes=0, parts=[], evicts="maxmemory-policy allkeys-lru"), ["evicts"]),
        (Storage(bytes=0, parts=[], saved=False), ["unsaved"]),
        (Storage(bytes=0, parts=[], rolled_back=0, saved=False), ["rolled back", "unsaved"]),
    ],
)
def test_what_loses_data_comes_first(storage: Storage, kinds: list[str]) -> None:
    assert [warning.kind for warning in warnings_of(storage)] == kinds


def test_a_warning_says_who_it_is_and_what_to_do() -> None:
    holder = StorageHolder(
        kind=HolderKind.TRANSACTION,
        name="4711",
        age=600 * SECOND,
        state="idle in transaction",
        application="reports",
        user="ann",
    )
    (warning,) = warnings_of(held_by(holder))
    assert warning.text == (
        "the transaction of process 4711 (application 'reports', user ann, idle in transaction, 600 s old) "
        "keeps what is deleted from being cleared away: let it end, or end it with pg_terminate_backend"
    )
    assert warning.subject == "transaction 4711"


@pytest.mark.parametrize(
    ("part", "kinds"),
    [
        (Part(name="job", bytes=0, rows=10, dead=MANY_DEAD - 1), []),
        (Part(name="job", bytes=0, rows=10, dead=MANY_DEAD), ["dead"]),
        (Part(name="job", bytes=0, rows=100 * MANY_DEAD, dead=MANY_DEAD), []),
        (Part(name="database", bytes=2 * MUCH_FREE, free=MUCH_FREE), ["free"]),
        (Part(name="database", bytes=2 * MUCH_FREE + 2, free=MUCH_FREE), []),
        (Part(name="database", bytes=100, free=100), []),
        (Part(name="WAL", bytes=100), []),
    ],
)
def test_dead_rows_and_free_room_count_when_they_are_many(part: Part, kinds: list[str]) -> None:
    assert [warning.kind for warning in warnings_of(made_of(part))] == kinds


def test_a_server_that_does_not_clear_away_is_told_of_after_the_cause() -> None:
    holder = StorageHolder(kind=HolderKind.PREPARED, name="x", age=LONG_HELD)
    part = Part(name="job", bytes=0, rows=0, dead=MANY_DEAD)
    storage = Storage(bytes=0, parts=[part], holders=[holder], cleared=False)
    assert [warning.kind for warning in warnings_of(storage)] == ["held", "off", "dead"]
