"""Making, checking and migrating the file."""

import os
import sqlite3
from functools import cache

from tidemill.engine.migrations import Migration, check_schema, load_migrations
from tidemill.engines.sqlite.db.connection import APPLICATION_ID, begin
from tidemill.engines.sqlite.url import SqliteUrl
from tidemill.model.errors import EngineDamaged, NotOurs, SchemaTooOld

SCHEMA = ("namespace", "queues", "jobs", "positions", "order", "cluster")
"""The scripts of schema version 1, in the order in which they run."""
MIGRATIONS: list[Migration] = load_migrations("tidemill.engines.sqlite", SCHEMA)
QUICK_CHECK_BYTES = 64 << 20
"""Up to this size the whole file is checked at open (about 0.1 s for 64 MB); a larger one is checked
as it is read, where damage is just as loud."""


def prepare(db: sqlite3.Connection, url: SqliteUrl, *, namespace: str, migrate: bool) -> None:
    """Make the file ours if it is empty, refuse it if it is something else, bring it up to date."""
    version = _inspect(db, url)
    if url.path is not None:
        _check_damage(db, url)
        db.execute("PRAGMA journal_mode = WAL")
    code = MIGRATIONS[-1].version
    if version < code and not migrate:
        raise SchemaTooOld(
            f"this Tidemill needs schema version {code} and {url} has {version}: run `tidemill migrate`"
        )
    if version < code:
        _migrate(db, url, namespace)
    _check_owner(db, url, namespace)


def _inspect(db: sqlite3.Connection, url: SqliteUrl) -> int:
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (objects,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != APPLICATION_ID and (objects or application or version):
        raise NotOurs(f"{url} is a database of something other than Tidemill; give another path")
    return int(version)


def _check_damage(db: sqlite3.Connection, url: SqliteUrl) -> None:
    if url.path is not None and os.path.getsize(url.path) <= QUICK_CHECK_BYTES:
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            reason = verdict.splitlines()[-1]
            raise EngineDamaged(f"{url} is damaged ({reason}): stop all processes and restore a backup")


def _migrate(db: sqlite3.Connection, url: SqliteUrl, namespace: str) -> None:
    begin(db, url.lock_timeout)
    try:
        version = _inspect(db, url)  # again under the lock: another process may have been first
        for migration in MIGRATIONS[version:]:
            for script in migration.scripts:
                for statement in _split(script.sql):
                    db.execute(statement)
            db.execute(f"PRAGMA user_version = {migration.version}")
            _set(db, "oldest_code", str(migration.oldest_code))
        if version == 0:
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            _set(db, "namespace", namespace)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _check_owner(db: sqlite3.Connection, url: SqliteUrl, namespace: str) -> None:
    meta = dict(db.execute("SELECT name, value FROM meta"))
    (version,) = db.execute("PRAGMA user_version").fetchone()
    try:
        oldest_code, owner = int(meta["oldest_code"]), meta["namespace"]
    except (KeyError, ValueError) as error:
        raise EngineDamaged(f"{url} does not say what it is ({error}): restore a backup") from None
    check_schema(code=MIGRATIONS[-1].version, schema=version, oldest_code=oldest_code, where=str(url))
    check_namespace(url, owner, namespace)


def check_namespace(url: SqliteUrl, owner: str, namespace: str) -> None:
    """Refuse a file that belongs to another namespace."""
    if owner != namespace:
        raise NotOurs(
            f"{url} belongs to the namespace {owner!r}, not {namespace!r}: "
            "with SQLite a namespace is a file, so give this one a file of its own"
        )


def _set(db: sqlite3.Connection, name: str, value: str) -> None:
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))


@cache
def _split(script: str) -> list[str]:
    """The statements of a script; sqlite3's executescript would commit on the way."""
    statements, pending = [], ""
    for line in script.splitlines():
        pending += line.split("--")[0].rstrip() + "\n"
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements
