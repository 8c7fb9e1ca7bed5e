"""Opening connections: which server, what is asked of it, and what stands before it.

**Several hosts** are tried in the order of the URL, beginning with the one that answered last. One that does
not answer, is starting, is full or cannot be written to is passed over. A server that turns read-only while
we are connected (a failover that leaves the old primary running) is noticed by the first write that it
refuses: then every connection of this engine object hangs up and connects again (`abandon`).

**A pooler** such as PgBouncer is found by a number: it reports a made-up process id of the server.
In transaction mode each statement may meet another server process, so nothing that lasts longer than a
transaction can be relied on: no prepared statements, no LISTEN. (With one in session mode this costs a little
and breaks nothing; `prepared=yes` and `listen=yes` in the URL say that it is one.)

**A peer that is gone without a word** (a firewall that forgot us, a machine without power) is noticed by the
kernel's keep-alive within half a minute, so that an idle connection is found broken before it is needed.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg

from tidemill.engines.postgres.db.driver import DriverConnection
from tidemill.engines.postgres.db.errors import NoServer, passed_over
from tidemill.engines.postgres.url import Address, Direct, PostgresUrl

Connection = asyncpg.Connection

STATEMENTS_KEPT = 200
KEEP_ALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
UNANSWERED_MS = 20_000
"""What was sent and is not acknowledged for so long means that the server is gone."""

_POOLED = "tidemill: not this process"
_IS_POOLED = (
    "DO $$ BEGIN IF pg_catalog.pg_backend_pid() <> {pid} THEN RAISE INFO '" + _POOLED + "'; END IF; END $$"
)
"""Answers by a message, because an answer in rows would need a prepared statement."""

log = logging.getLogger("tidemill.engine")


class PostgresConnector:
    """Opens the connections of one engine object."""

    def __init__(self, url: PostgresUrl) -> None:
        self.url = url
        self.era = 0
        """Grows when the server that we knew is no longer the right one."""
        self.on_new_era: set[Callable[[], None]] = set()
        """Called when an era begins."""
        self._pooled = url.prepared is False
        self._first = 0

    @property
    def listens(self) -> bool:
        """Whether signals are received by LISTEN. Otherwise subscribers poll."""
        listen = self.url.listen
        return not self._pooled if listen is None else bool(listen)

    async def first(self, purpose: str) -> "Connection[Any]":
        """The first connection, which finds out what stands before the server."""
        connection = await self.open(purpose)
        if self.url.prepared is None and await _is_pooled(connection):
            connection.terminate()
            self.found_pooler()
            connection = await self.open(purpose)
        return connection

    async def open(self, purpose: str, within_s: float | None = None) -> "Connection[Any]":
        """Connect, to the first server that will do. `within_s`: all of them are to be tried in this time, of
        which each has its share; the last may take longer."""
        hosts = max(1, len(self.url.addresses))
        failures: list[tuple[Address | None, Exception]] = []
        for number, address in self._in_order():
            patience_s = self.url.connect_timeout
            if within_s is not None and len(failures) < hosts - 1:
                patience_s = min(patience_s, within_s / hosts)
            try:
                connection = await self._connect(address, purpose, patience_s)
            except Exception as error:
                failures.append((address, error))
                if not passed_over(error):
                    break
            else:
                self._first = number
                return connection
        raise NoServer(failures)

    async def open_listening(self) -> "Connection[Any]":
        """Connect for LISTEN: past the pooler, if the URL knows a way."""
        direct = self.url.listen
        if isinstance(direct, Direct):
            return await self._connect(direct.address, "listen", self.url.connect_timeout, direct)
        return await self.open("listen")

    def abandon(self, era: int) -> None:
        """The server of that era cannot be written to: all connections connect anew, once."""
        if era == self.era:
            self._begin_era()

    def found_pooler(self) -> None:
        """From now on connections use nothing that a pooler might lose."""
        if not self._pooled:
            self._pooled = True
            self._begin_era()  # connections with prepared statements end
            log.info(
                "a pooler stands before %s: statements are not prepared, and signals are %s", self.url,
                "received from the server itself" if self.listens else
                "polled for once a second (listen=host:port in the URL names the server itself)",
            )  # fmt: skip

    def _begin_era(self) -> None:
        self.era += 1
        for notify in list(self.on_new_era):
            notify()

    def _in_order(self) -> "Iterator[tuple[int, Address | None]]":
        addresses: tuple[Address | None, ...] = self.url.addresses or (None,)
        for step in range(len(addresses)):
            number = (self._first + step) % len(addresses)
            yield number, addresses[number]

    async def _connect(
        self, address: Address | None, purpose: str, patience_s: float, direct: Direct | None = None
    ) -> "Connection[Any]":
        """Nothing is set in the session but what the startup message says: a pooler would lose it."""
        url = self.url
        settings = {"application_name": f"tidemill {purpose}"}
        if url.durability == "off":
            settings["synchronous_commit"] = "off"
        connection: Connection[Any] = await asyncpg.connect(
            url.dsn,
            host=address and address.host,
            port=address and address.port,
            user=(direct and direct.user) or url.user,
            password=url.password,
            database=(direct and direct.database) or url.database,
            timeout=patience_s,
            statement_cache_size=0 if self._pooled else STATEMENTS_KEPT,
            max_cached_statement_lifetime=0,
            server_settings=settings,
            connection_class=DriverConnection,
        )
        _keep_alive(connection)
        return connection


async def _is_pooled(connection: "Connection[Any]") -> bool:
    received: list[str] = []

    def receive(_: object, message: Any) -> None:
        received.append(str(message.message))

    connection.add_log_listener(receive)
    await connection.execute(_IS_POOLED.format(pid=connection.get_server_pid()))
    await asyncio.sleep(0)  # listeners are called by the loop
    connection.remove_log_listener(receive)
    return _POOLED in received


def _keep_alive(connection: "Connection[Any]") -> None:
    """The driver has no option for it, and the system's own waits two hours."""
    transport: asyncio.Transport = connection._transport  # type: ignore[attr-defined]
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in {**KEEP_ALIVE, "TCP_USER_TIMEOUT": UNANSWERED_MS}.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
