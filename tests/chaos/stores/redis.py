"""A private Redis behind a proxy for each link. What it has acknowledged is on its disk (appendfsync always):
with the usual everysec a killed server may forget its last second, which no checker could tell from a bug."""

import asyncio
from contextlib import suppress

from tests.chaos.stores.store import CALL_TIMEOUT_S, Store
from tests.servers.proxy import REDIS, Proxy
from tests.servers.redis import RedisServer

LITTLE = "1mb"


class RedisStore(Store):
    able = frozenset({"server", "links", "storm", "disk", "memory", "clock"})

    async def start(self) -> None:
        self._server = RedisServer(settings={"appendfsync": "always"}, disk=self.disk.folder)
        await asyncio.to_thread(self._server.start)
        await self._open_links([Proxy(self._server.port, REDIS) for _ in range(self._links)])

    def url(self, link: int | None = None) -> str:
        port = self._server.port if link is None else self.proxies[link].port
        return f"redis://127.0.0.1:{port}/0?call_timeout={CALL_TIMEOUT_S}"

    def shut(self) -> None:
        self._server.close()

    def kill(self) -> None:
        if self._server.alive:
            self._server.kill()

    def start_again(self) -> None:
        if not self._server.alive:
            self._server.start()

    def pause(self) -> None:
        self._server.pause()

    def resume(self) -> None:
        self._server.resume()

    def close_connections(self) -> None:
        with suppress(OSError):
            for kind in ("normal", "pubsub"):
                self._server.command("CLIENT", "KILL", "TYPE", kind)

    def limit_memory(self, *, on: bool) -> None:
        self._server.command("CONFIG", "SET", "maxmemory", LITTLE if on else "0")
