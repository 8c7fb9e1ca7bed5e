"""Making, checking and migrating the schema of a namespace."""

from typing import Any

import asyncpg

from penstock.engine.migrations import Migration, check_schema, load_migrations
from penstock.engines.postgres.errors import translate_opening
from penstock.engines.postgres.line import Connection
from penstock.engines.postgres.place import Place
from penstock.model.errors import BadUrl, EngineDamaged, NotOurs, PenstockError, SchemaTooOld

MIGRATIONS: list[Migration] = load_migrations(__package__)
OLDEST_SERVER = 130_000

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
_META = 'SELECT name, value FROM "{}".meta'
_TABLES = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace($1)"


async def prepare(connection: "Connection[Any]", place: Place, *, migrate: bool) -> None:
    """Make the schema ours if it is not there, refuse it if it is something else's, bring it up to date."""
    try:
        await _check_server(connection, place)
        version = await _inspect(connection, place)
        if version < MIGRATIONS[-1].version:
            if not migrate:
                raise SchemaTooOld(
                    f"this Penstock needs schema version {MIGRATIONS[-1].version} and {place} has {version} "
                    f"in {place.schema}: run `penstock migrate`"
                )
            await _migrate(connection, place)
    except PenstockError:
        raise
    except Exception as error:
        raise translate_opening(error, place) from error


async def _check_server(connection: "Connection[Any]", place: Place) -> None:
    version, encoding, isolation = await connection.fetchrow(  # type: ignore[misc]
        "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), "
        "current_setting('default_transaction_isolation')"
    )
    if version < OLDEST_SERVER:
        raise BadUrl(f"{place} is PostgreSQL {version // 10_000}; Penstock needs 13 or newer")
    if encoding != "UTF8":
        raise BadUrl(f"{place} has the encoding {encoding}; Penstock needs a database with UTF8")
    if isolation != "read committed":
        raise BadUrl(
            f"{place} has default_transaction_isolation = {isolation}; Penstock's functions need read "
            "committed: set it for this role or database"
        )


async def _inspect(connection: "Connection[Any]", place: Place) -> int:
    """The version of the schema; 0: there is none yet."""
    if not await connection.fetchval(_TABLES, place.schema):
        return 0
    try:
        meta = {row[0]: row[1] for row in await connection.fetch(_META.format(place.schema))}
    except asyncpg.PostgresError as error:
        if error.sqlstate in ("42P01", "42703"):
            raise NotOurs(
                f"the schema {place.schema} of {place} belongs to something other than Penstock; "
                "choose another namespace"
            ) from None
        raise
    if meta.get("application") != "penstock":
        raise NotOurs(f"the schema {place.schema} of {place} is not Penstock's; choose another namespace")
    try:
        version, oldest_code = int(meta["version"]), int(meta["oldest_code"])
    except (KeyError, ValueError):
        raise EngineDamaged(f"{place} does not say its version: restore a backup") from None
    check_schema(
        code=MIGRATIONS[-1].version,
        schema=version,
        oldest_code=oldest_code,
        place=f"{place} ({place.schema})",
    )
    return version


async def _migrate(connection: "Connection[Any]", place: Place) -> None:
    """Run what is missing, in one transaction. Starting processes race: one migrates, the others wait."""
    async with connection.transaction():
        await connection.execute(_LOCK, f"penstock migration of {place.schema}")
        version = await _inspect(connection, place)  # again under the lock: another may have been first
        if await connection.fetchval("SELECT to_regnamespace($1) IS NULL", place.schema):
            await connection.execute(f'CREATE SCHEMA "{place.schema}"')
        await connection.execute(f'SET LOCAL search_path = "{place.schema}", pg_catalog')
        for migration in MIGRATIONS[version:]:
            await connection.execute(migration.sql)
            values = {
                "application": "penstock",
                "version": str(migration.version),
                "oldest_code": str(migration.oldest_code),
            }
            await connection.executemany(
                "INSERT INTO meta VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                list(values.items()),
            )
