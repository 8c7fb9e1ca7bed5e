"""Empty logical databases of one server: emptied when they are handed out."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.servers.redis import DATABASES, RedisServer


class RedisUrls:
    """The databases of one server. Number 0 is left alone."""

    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self._next = 1

    def fresh(self) -> str:
        """The URL of an empty database: the one that was handed out longest ago."""
        number, self._next = self._next, self._next % (DATABASES - 1) + 1
        answer = self.server.command("FLUSHDB", "SYNC", database=number)
        assert answer.startswith(b"+OK"), answer
        return self.server.url(number)

    def release(self) -> None:
        """What was handed out is no longer in use; it is emptied when its turn comes again."""

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Nobody gets in, and whoever was in is thrown out, while it lasts."""
        self.server.stop()
        yield
        self.server.start()

    def close(self) -> None:
        self.server.close()
