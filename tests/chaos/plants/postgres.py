"""Bugs of the PostgreSQL engine, in the text of its migrations."""

from penstock.engines.postgres import schema
from tests.chaos.plants import ZOMBIES, plant


def rewrite(part: str, old: str, new: str) -> None:
    for place, migration in enumerate(schema.MIGRATIONS):
        if part in migration.name:
            found = migration.sql.count(old)
            assert found == 1, f"{migration.name} contains {old!r} {found} times: renew this planted bug"
            schema.MIGRATIONS[place] = migration._replace(sql=migration.sql.replace(old, new))
            return
    raise AssertionError(f"there is no migration {part}")


@plant("postgres", "stale_writes_change_nothing", *ZOMBIES, rate=3.0, CHAOS_NAP="2.5")
def completion_ignores_the_fence() -> None:
    rewrite(
        "settle",
        "j.id = i.id AND j.token IS NOT DISTINCT FROM i.fence",
        "j.id = i.id AND j.token IS NOT NULL",
    )


@plant("postgres", "attempts_are_counted")
def a_failed_attempt_is_free() -> None:
    rewrite("settle", "j.attempts := j.attempts + 1;", "")
