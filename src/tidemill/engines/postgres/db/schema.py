"""Making, checking and migrating the schema of a namespace."""

import asyncio
from typing import Any

import asyncpg

from tidemill.engine.migrations import Migration, check_schema, load_migrations
from tidemill.engines.postgres.db.connect import Connection
from tidemill.engines.postgres.db.errors import translate_opening
from tidemill.engines.postgres.url import PostgresUrl
from tidemill.model.errors import (
    BadUrl,
    EngineDamaged,
    EngineUnavailable,
    NotOurs,
    SchemaTooOld,
    TidemillError,
)

SCHEMA = (
    "tables/namespace",
    "tables/jobs",
    "tables/queues",
    "tables/order",
    "tables/cluster",
    "tables/vacuum",
    "common/clock",
    "common/locks",
    "common/audit",
    "jobs/moves",
    "jobs/failures",
    "jobs/transitions",
    "jobs/dependents",
    "jobs/on_dead",
    "jobs/lost_runs",
    "jobs/promote",
    "jobs/enqueue",
    "jobs/unique",
    "order/gates",
    "order/lanes",
    "order/turns",
    "order/plain_lanes",
    "jobs/claim",
    "order/aside",
    "jobs/claim_plain",
    "jobs/settle",
    "jobs/commands",
    "cluster/stats",
    "jobs/prune",
    "cluster/queues",
    "cluster/members",
    "cluster/schedules",
    "cluster/leases",
    "order/late_commits",
    "users/transactions",
    "users/enqueue",
    "settings",
)
"""The scripts of schema version 1, in the order in which they run. A function in SQL must come after the
functions that it calls; one in PL/pgSQL need not."""
MIGRATIONS: list[Migration] = load_migrations("tidemill.engines.postgres", SCHEMA)
OLDEST_SERVER = 130_000
LONGEST_MIGRATION_S = 3_600.0

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
_META = 'SELECT name, value FROM "{}".meta'
_RIGHTS = """
SELECT current_user, current_database(), pg_get_userbyid(nspowner),
       has_database_privilege(current_database(), 'CREATE'),
       has_schema_privilege(oid, 'USAGE'), has_schema_privilege(oid, 'CREATE')
FROM (SELECT to_regnamespace($1)) AS ours (found) LEFT JOIN pg_namespace ON oid = found
"""
_IDENTITY = 'SELECT "{}".identity_v1()'
_TABLES = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace($1)"


async def prepare(connection: "Connection[Any]", url: PostgresUrl, *, migrate: bool) -> str:
    """Make the schema ours if it is not there, refuse it if it is something else's, bring it up to date.
    Returns the identity of the namespace."""
    try:
        async with asyncio.timeout(url.call_timeout):
            await _check_server(connection, url)
            version = await _inspect(connection, url)
        if version < MIGRATIONS[-1].version:
            if not migrate:
                raise SchemaTooOld(
                    f"this Tidemill needs schema version {MIGRATIONS[-1].version} and {url} has {version} "
                    f"in {url.schema}: run `tidemill migrate`"
                )
            async with asyncio.timeout(LONGEST_MIGRATION_S):
                await _migrate(connection, url)
        return str(await connection.fetchval(_IDENTITY.format(url.schema)))
    except TidemillError:
        raise
    except asyncpg.InsufficientPrivilegeError as error:
        raise await _what_to_grant(connection, url, error) from None
    except asyncpg.LockNotAvailableError:
        raise EngineUnavailable(f"another process is migrating {url.schema} of {url}") from None
    except Exception as error:
        raise translate_opening(error, url) from error


async def _check_server(connection: "Connection[Any]", url: PostgresUrl) -> None:
    version, encoding, isolation = await connection.fetchrow(  # type: ignore[misc]
        "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), "
        "current_setting('default_transaction_isolation')"
    )
    if version < OLDEST_SERVER:
        raise BadUrl(f"{url} is PostgreSQL {version // 10_000}; Tidemill needs 13 or newer")
    if encoding != "UTF8":
        raise BadUrl(f"{url} has the encoding {encoding}; Tidemill needs a database with UTF8")
    if isolation != "read committed":
        raise BadUrl(
            f"{url} has default_transaction_isolation = {isolation}; Tidemill's functions need read "
            "committed: set it for this role or database"
        )


async def _inspect(connection: "Connection[Any]", url: PostgresUrl) -> int:
    """The version of the schema; 0: there is none yet."""
    if not await connection.fetchval(_TABLES, url.schema):
        return 0
    try:
        meta = {row[0]: row[1] for row in await connection.fetch(_META.format(url.schema))}
    except asyncpg.PostgresError as error:
        if error.sqlstate in ("42P01", "42703"):
            raise NotOurs(
                f"the schema {url.schema} of {url} belongs to something other than Tidemill; "
                "choose another namespace"
            ) from None
        raise
    if meta.get("application") != "tidemill":
        raise NotOurs(f"the schema {url.schema} of {url} is not Tidemill's; choose another namespace")
    try:
        version, oldest_code = int(meta["version"]), int(meta["oldest_code"])
    except (KeyError, ValueError):
        raise EngineDamaged(f"{url} does not say its version: restore a backup") from None
    check_schema(
        code=MIGRATIONS[-1].version,
        schema=version,
        oldest_code=oldest_code,
        where=f"{url} ({url.schema})",
    )
    return version


async def _migrate(connection: "Connection[Any]", url: PostgresUrl) -> None:
    """Run what is missing, in one transaction. Starting processes race: one migrates, the others wait."""
    async with connection.transaction():
        await connection.execute(f"SET LOCAL lock_timeout = {int(url.call_timeout * 1_000)}")
        await connection.execute(_LOCK, f"tidemill migration of {url.schema}")
        await connection.execute("SET LOCAL lock_timeout = 0")
        version = await _inspect(connection, url)  # again under the lock: another may have been first
        if await connection.fetchval("SELECT to_regnamespace($1) IS NULL", url.schema):
            await connection.execute(f'CREATE SCHEMA "{url.schema}"')
        await connection.execute(f'SET LOCAL search_path = "{url.schema}", pg_catalog')
        for migration in MIGRATIONS[version:]:
            for script in migration.scripts:
                await connection.execute(script.sql)
            values = {
                "application": "tidemill",
                "version": str(migration.version),
                "oldest_code": str(migration.oldest_code),
            }
            await connection.executemany(
                "INSERT INTO meta VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                list(values.items()),
            )


async def _what_to_grant(
    connection: "Connection[Any]", url: PostgresUrl, error: asyncpg.PostgresError
) -> TidemillError:
    """Which right the role lacks, as a statement for an administrator to run."""
    async with asyncio.timeout(url.call_timeout):
        role, database, owner, makes_schemas, may_use, may_create = await connection.fetchrow(  # type: ignore[misc]
            _RIGHTS, url.schema
        )
    schema, refused = url.schema, f"{url} refused: {error.message}"
    if owner is None and not makes_schemas:
        return BadUrl(
            f'{refused}; there is no schema {schema}, and "{role}" may not make it: CREATE SCHEMA "{schema}" '
            f'AUTHORIZATION "{role}", or GRANT CREATE ON DATABASE "{database}" TO "{role}"'
        )
    if not may_use:
        return BadUrl(
            f'{refused}; use the role "{owner}", or GRANT USAGE ON SCHEMA "{schema}" TO "{role}", and what '
            "it needs of the tables and sequences there"
        )
    if not may_create:
        return BadUrl(
            f'{refused}; GRANT CREATE ON SCHEMA "{schema}" TO "{role}", or run `tidemill migrate` as '
            f'"{owner}"'
        )
    return BadUrl(
        f'{refused}; "{role}" may use the schema {schema} of "{owner}" and not all that is in it: GRANT '
        f'SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "{schema}" and ALL ON ALL '
        f'SEQUENCES IN SCHEMA "{schema}" TO "{role}", or GRANT "{owner}" TO "{role}"'
    )
