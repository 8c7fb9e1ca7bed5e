"""What a run needs of a store."""

import asyncio
from pathlib import Path

from tests.chaos.stores.disk import Disk
from tests.servers.proxy import Proxy

CALL_TIMEOUT_S = 3
"""A call without an answer is given up after this long: 30 s by default, for leases of 10 s."""


class Store:
    """A place for state, reached over numbered links. `able` names the faults that make sense here."""

    able: frozenset[str] = frozenset()

    def __init__(self, folder: Path, links: int) -> None:
        self.folder = folder
        self.disk = Disk.mounted(folder / "disk")
        self.proxies: list[Proxy] = []
        self.turn = asyncio.Lock()
        """One thing at a time is done to the server itself."""
        self._links = links

    async def start(self) -> None:
        """The server, and the links to it."""
        raise NotImplementedError

    def url(self, link: int | None = None) -> str:
        """By one of the links, or (None) straight."""
        raise NotImplementedError

    async def close(self) -> None:
        for proxy in self.proxies:
            await proxy.close()
        await asyncio.to_thread(self.shut)
        self.disk.close()

    def shut(self) -> None:
        """End the server."""

    # What can be done to it. Blocking: called from a thread.

    def kill(self) -> None:
        raise NotImplementedError

    def start_again(self) -> None:
        """If it does not run."""

    def pause(self) -> None:
        raise NotImplementedError

    def resume(self) -> None:
        raise NotImplementedError

    def close_connections(self) -> None:
        """All that clients have, by the server's own means."""
        raise NotImplementedError

    def limit_memory(self, *, on: bool) -> None:
        raise NotImplementedError

    async def hold_transaction(self, length_s: float) -> None:
        """Somebody's transaction stays open this long."""
        raise NotImplementedError

    async def _open_links(self, proxies: list[Proxy]) -> None:
        for proxy in proxies:
            self.proxies.append(await proxy.start())
