"""`python -m bench --peers [NAME ...]`: Tidemill beside other queues on the same engine, turn and turn about.

Each contender has a private server of its own and works alone while it has its turn. A peer that fails is
reported with what it said, and the others go on."""

import asyncio
import os
import platform
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgspec
from rich.markup import escape

from bench.peers.brokers import BROKERS
from bench.peers.catalogue import PEERS, Peer
from bench.peers.contender import TIDEMILL, Contender, Turn, tidemill_home
from bench.peers.environment import PeerMissing
from bench.peers.processes import PeerFailed
from bench.peers.recovery import Recovery
from bench.peers.recovery import measure as recover
from bench.progress import Steps
from tests.servers.postgres import NoServer
from tidemill.model.errors import TidemillError

ENGINES = ("sqlite", "postgres", "redis", "rabbitmq")
PEER_S = 420.0
"""The longest that one peer may take, Tidemill's turns beside it included."""
FAILURES = (PeerMissing, PeerFailed, NoServer, TidemillError, OSError, RuntimeError, TimeoutError)


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    jobs: int = 10_000
    rounds: int = 3
    samples: int = 100


class Result(msgspec.Struct, kw_only=True):
    """A contender on an engine."""

    name: str
    title: str
    engine: str
    version: str
    broker: str = ""
    turns: list[Turn] = []
    recovery: Recovery | None = None
    beside: list[Turn] = []
    """Tidemill's turns in the same rounds; empty for Tidemill itself."""
    beside_engine: str = ""
    error: str | None = None


class Outcome(msgspec.Struct, kw_only=True):
    """One run."""

    date: str
    machine: str
    python: str
    jobs: int
    rounds: int
    note: str = ""
    """What a reader should know of it, such as that the machine had other work."""
    results: list[Result] = []


def chosen(names: Sequence[str]) -> list[Peer]:
    """The peers of these names, or the default set, by engine; of `all`, every one. ValueError names what
    there is."""
    if list(names) == ["all"]:
        names = list(PEERS)
    if wrong := [name for name in names if name not in PEERS]:
        raise ValueError(f"no peer {', '.join(wrong)}; there are {', '.join(PEERS)}")
    peers = [PEERS[name] for name in dict.fromkeys(names)] or [
        one for one in PEERS.values() if one.by_default
    ]
    return sorted(peers, key=lambda peer: ENGINES.index(peer.engine))


def begin(sizes: Sizes, note: str = "") -> Outcome:
    """A run that has measured nothing yet."""
    return Outcome(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=machine(),
        python=platform.python_version(),
        jobs=sizes.jobs,
        rounds=sizes.rounds,
        note=note,
    )


async def run(peers: Sequence[Peer], sizes: Sizes, steps: Steps, outcome: Outcome) -> None:
    """Add what is measured as soon as it is, so that a run that is interrupted was not in vain."""
    for engine, group in groupby(peers, key=lambda peer: peer.beside):
        with Arena(engine, sizes, steps) as arena:
            await arena.run(list(group), outcome.results)


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}"


class Arena:
    """One engine: Tidemill on it, and its peers one after another."""

    def __init__(self, engine: str, sizes: Sizes, steps: Steps) -> None:
        self._engine, self._sizes, self._steps = engine, sizes, steps
        self._stack = ExitStack()

    def __enter__(self) -> "Arena":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    async def run(self, peers: Sequence[Peer], results: list[Result]) -> None:
        advance = self._steps.begin(
            f"{self._engine}: " + ", ".join(peer.name for peer in peers),
            len(peers) * (2 * self._sizes.rounds + 1) + 1,
        )
        ours = Result(name="tidemill", title="Tidemill", engine=self._engine, version=version("tidemill"))
        results.append(ours)
        try:
            tidemill = self._enter(TIDEMILL, self._engine, tidemill_home(), self._stack)
            ours.broker = tidemill.broker.version
            for peer in peers:
                results.append(await self._beside(peer, tidemill, advance))
                ours.turns += results[-1].beside
            ours.recovery = await recover(tidemill)
            advance()
        except FAILURES as failure:
            ours.error = _said(failure)
            self._steps.say(escape(f"FAILED: Tidemill on {self._engine}: {ours.error}"))

    async def _beside(self, peer: Peer, tidemill: Contender, advance: Callable[[], None]) -> Result:
        result = Result(
            name=peer.name,
            title=peer.title,
            engine=peer.engine,
            version=peer.version,
            beside_engine=peer.beside,
        )
        try:
            home = await asyncio.to_thread(lambda: peer.home)
            async with asyncio.timeout(PEER_S):
                with ExitStack() as stack:
                    contender = self._enter(peer, peer.engine, home, stack)
                    result.broker = contender.broker.version
                    for _ in range(self._sizes.rounds):
                        result.turns.append(await contender.turn(self._sizes.jobs, self._sizes.samples))
                        advance()
                        result.beside.append(await tidemill.turn(self._sizes.jobs, self._sizes.samples))
                        advance()
                    result.recovery = await recover(contender)
                    advance()
            self._steps.say(_summary(result))
        except FAILURES as failure:
            result.error = _said(failure)
            self._steps.say(escape(f"FAILED: {peer.name}: {result.error}"))
        return result

    def _enter(self, peer: Peer, engine: str, home: Path, stack: ExitStack) -> Contender:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix=f"tidemill-{peer.name}-")))
        return Contender(peer, home, stack.enter_context(closing(BROKERS[engine](folder))), folder)


def _summary(result: Result) -> str:
    theirs, ours = (median(turn.jobs_s for turn in turns) for turns in (result.turns, result.beside))
    return f"{result.name}: {theirs:,.0f} jobs/s, Tidemill beside it {ours:,.0f}; {result.recovery}"


def _said(failure: BaseException) -> str:
    if isinstance(failure, TimeoutError) and not str(failure):
        return f"not done within {PEER_S:g} s"
    return " ".join((str(failure) or type(failure).__name__).split())
