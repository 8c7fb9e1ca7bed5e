"""A file. It has no server and no links: what is lost on the way is lost in the processes (`weather`)."""

import asyncio
import sqlite3

from tests.chaos.stores.store import Store


class SqliteStore(Store):
    able = frozenset({"disk", "transaction"})

    async def start(self) -> None:
        pass

    def url(self, link: int | None = None) -> str:
        return f"sqlite:///{self.disk.folder}/tidemill.db?lock_timeout=2"

    async def hold_transaction(self, length_s: float) -> None:
        """Nobody else can write meanwhile."""
        await asyncio.to_thread(self._hold, length_s)

    def _hold(self, length_s: float) -> None:
        import time

        db = sqlite3.connect(self.disk.folder / "tidemill.db", isolation_level=None, timeout=30)
        try:
            db.execute("BEGIN IMMEDIATE")
            time.sleep(length_s)
            db.execute("ROLLBACK")
        finally:
            db.close()
