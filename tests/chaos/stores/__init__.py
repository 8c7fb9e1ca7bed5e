"""The engines of a run: a private server or file, the ways to it, and what can be done to it."""

from pathlib import Path

from tests.chaos.stores.postgres import PostgresStore
from tests.chaos.stores.redis import RedisStore
from tests.chaos.stores.sqlite import SqliteStore
from tests.chaos.stores.store import Store

STORES: dict[str, type[Store]] = {"sqlite": SqliteStore, "postgres": PostgresStore, "redis": RedisStore}


def make_store(engine: str, folder: Path, links: int) -> Store:
    return STORES[engine](folder, links)
