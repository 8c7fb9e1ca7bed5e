"""Opening and ending connections.

A peer that is gone without a word is noticed by the kernel's keep-alive within half a minute, so that an idle
connection is found broken before it is needed.
"""

import asyncio
import socket
from contextlib import suppress
from typing import Any

from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import TimeoutError as RedisTimeout

from tidemill.engines.redis.url import RedisUrl
from tidemill.model.errors import EngineUnavailable

CONNECT_S = 10.0
KEEP_ALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 20_000}
"""Probes after 15 s of silence; what is not acknowledged for 20 s means that the server is gone."""

_KEPT_ALIVE: dict[str, Any] = {
    "socket_keepalive": True,
    "socket_keepalive_options": {
        getattr(socket, name): value for name, value in KEEP_ALIVE.items() if hasattr(socket, name)
    },
}


async def hang_up(connection: AbstractConnection) -> None:
    """Close, whatever state the connection is in."""
    with suppress(Exception):
        await connection.disconnect(nowait=True)


async def open_connection(url: RedisUrl, purpose: str) -> AbstractConnection:
    """Connect. The driver must not repeat anything by itself: it cannot know what was applied."""
    options: dict[str, Any] = {
        "db": url.db,
        "username": url.user,
        "password": url.password,
        "socket_connect_timeout": CONNECT_S,
        "socket_timeout": None,
        "retry": Retry(NoBackoff(), 0),
        "retry_on_timeout": False,
        "health_check_interval": 0,
        "client_name": f"tidemill-{purpose}",
        "protocol": 2,
        "decode_responses": False,
    }
    connection: AbstractConnection
    if url.path is not None:
        connection = UnixDomainSocketConnection(path=url.path, **options)
    elif url.tls is not None:
        tls = {**url.tls, "ssl_check_hostname": url.tls.get("ssl_cert_reqs") != "none"}
        connection = SSLConnection(host=url.host, port=url.port, **{**_KEPT_ALIVE, **options, **tls})
    else:
        connection = Connection(host=url.host, port=url.port, **_KEPT_ALIVE, **options)
    try:
        async with asyncio.timeout(CONNECT_S):
            await connection.connect()  # type: ignore[no-untyped-call]
    except BaseException as error:
        await hang_up(connection)
        if isinstance(error, TimeoutError | RedisTimeout):
            hint = "" if url.tls is None else ": does it speak TLS on this port?"
            raise EngineUnavailable(f"{url} did not answer in {CONNECT_S:g} s{hint}") from error
        raise
    return connection
