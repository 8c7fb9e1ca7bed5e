"""Whether a url can be used: a server that keeps what it is given, and keys that are ours."""

from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ResponseError

from tidemill.engines.redis.url import RedisUrl
from tidemill.model.errors import BadUrl, NotOurs, SchemaTooNew, SchemaTooOld

VERSION = 1
"""Of the layout of the keys. A url records its version and the oldest code that may use it."""
OLDEST_SERVER = (6, 2)
FLAGS_SINCE = (7, 0)


async def prepare(connection: AbstractConnection, url: RedisUrl, *, migrate: bool) -> bool:
    """Check the server and the namespace; write our mark into an empty one. Answers whether scripts may carry
    flags there."""

    async def ask(*parts: str) -> Any:
        await connection.send_command(*parts, check_health=False)
        return await connection.read_response()

    version = _check_server(await ask("INFO", "server"), url)
    _check_policy(await _policy(ask), url)
    key = f"{url.prefix}meta"
    try:
        stored = await ask("HMGET", key, "app", "version", "oldest_code")
    except ResponseError as error:
        if not str(error).startswith("WRONGTYPE"):
            raise
        stored = [b"", None, None]
    if stored[0] is None:
        if not migrate:
            raise SchemaTooOld(f"{url} has no namespace {url.namespace!r} yet; run `tidemill migrate`")
        # whole at once, and the same from every process: several may do this at the same time
        await ask("HSET", key, "app", "tidemill", "version", str(VERSION), "oldest_code", str(VERSION))
    elif stored[0] != b"tidemill":
        raise NotOurs(f"the keys {url.prefix}* in {url} belong to something else: take another namespace")
    elif int(stored[2] or 0) > VERSION:
        raise SchemaTooNew(
            f"{url} has layout {stored[1].decode()}, made by a newer Tidemill; this one knows {VERSION}: "
            "update it"
        )
    return version >= FLAGS_SINCE


async def _policy(ask: Any) -> str | None:
    """The server's maxmemory-policy; None if the server does not say: some providers forbid CONFIG."""
    found: dict[str, str] = {}
    for line in (await ask("INFO", "memory")).decode().splitlines():
        name, _, value = line.partition(":")
        found[name] = value.strip()
    if "maxmemory_policy" in found:
        return found["maxmemory_policy"]
    try:
        answer = await ask("CONFIG", "GET", "maxmemory-policy")
    except ResponseError:
        return None
    return str(answer[1].decode()) if len(answer) == 2 else None


def evicts(policy: str) -> bool:
    """Volatile policies evict only keys that expire, and ours never do."""
    return policy.startswith("allkeys")


def eviction(policy: str, url: RedisUrl) -> str:
    """What is wrong with it."""
    return (
        f"{url} evicts keys when memory runs out (maxmemory-policy {policy}), which would lose jobs: "
        "set maxmemory-policy to noeviction"
    )


def _check_policy(policy: str | None, url: RedisUrl) -> None:
    if policy is not None and evicts(policy):
        raise BadUrl(eviction(policy, url))


def _check_server(info: bytes, url: RedisUrl) -> tuple[int, ...]:
    for line in info.decode().splitlines():
        name, _, value = line.partition(":")
        if name == "redis_version":
            version = tuple(int(part) for part in value.strip().split(".")[:2])
            if version < OLDEST_SERVER:
                raise BadUrl(f"{url} is Redis {value.strip()}; Tidemill needs 6.2 or newer")
            return version
    return OLDEST_SERVER
