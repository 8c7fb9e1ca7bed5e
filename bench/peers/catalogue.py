"""The peers that can be measured. What each is given, and which page says so, stands in its program."""

from dataclasses import dataclass, field
from pathlib import Path

from bench.peers.environment import node_with, python_with

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Peer:
    """One queue on one engine."""

    name: str
    title: str
    engine: str
    program: str
    """Its module, or file, in `programs`."""
    worker: str
    """The command of a worker: {bin} is the folder of its environment's programs, {programs} that of ours,
    {url} the broker."""
    copies: int = 1
    """How often it is started: once where it starts two processes by itself."""
    requirements: tuple[str, ...] = ()
    node: tuple[str, ...] = ()
    """Packages for Node, instead."""
    by_default: bool = False
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        return (self.node or self.requirements)[0].replace("@", " ").replace("==", " ")

    @property
    def home(self) -> Path:
        """Its environment, made on first use. `PeerMissing` if it cannot be had here."""
        return node_with(*self.node) if self.node else python_with(*self.requirements).parent

    @property
    def beside(self) -> str:
        """The engine on which Tidemill takes its turns: its dispatch over RabbitMQ does not exist yet."""
        return "postgres" if self.engine == "rabbitmq" else self.engine


_CELERY = ("celery==5.7.0", "celery[redis]==5.7.0", "hiredis")
_CELERY_WORKER = (
    "{bin}/celery -A celery_jobs worker -P prefork -c 2 --loglevel WARNING "
    "--without-gossip --without-mingle --without-heartbeat"
)
_DRAMATIQ = ("dramatiq==2.2.1", "dramatiq[redis,rabbitmq]==2.2.1", "hiredis")
_DRAMATIQ_WORKER = "{bin}/dramatiq dramatiq_jobs -p 2 -t 8"
_DRAMATIQ_PREFETCH = {"dramatiq_queue_prefetch": "256"}
_HUEY = ("huey==3.5.4", "redis", "hiredis")
_HUEY_WORKER = "{bin}/huey_consumer huey_jobs.huey -w 2 -k process -n -q"
_SAQ = ("saq==0.26.4", "redis", "hiredis", "psycopg[binary,pool]", "uvloop")
_SAQ_WORKER = "{bin}/saq saq_jobs.settings --workers 2"
_TASKIQ = ("taskiq==0.13.0", "taskiq-redis==1.2.4", "hiredis", "uvloop")
_TASKIQ_WORKER = (
    "{bin}/taskiq worker taskiq_jobs:broker --workers 2 --max-async-tasks 200 --log-level WARNING"
)

_ALL = (
    Peer(
        name="huey-sqlite",
        title="Huey",
        engine="sqlite",
        program="huey_jobs",
        worker=f"{_HUEY_WORKER} -d 0.01 -m 0.01",
        requirements=_HUEY,
        by_default=True,
    ),
    Peer(
        name="pgqueuer",
        title="PgQueuer",
        engine="postgres",
        program="pgqueuer_jobs",
        worker="{bin}/python {programs}/pgqueuer_jobs.py",
        copies=2,
        requirements=("pgqueuer==1.6.0", "asyncpg", "uvloop"),
        by_default=True,
    ),
    Peer(
        name="celery",
        title="Celery",
        engine="redis",
        program="celery_jobs",
        worker=_CELERY_WORKER,
        requirements=_CELERY,
        by_default=True,
    ),
    Peer(
        name="dramatiq",
        title="Dramatiq",
        engine="redis",
        program="dramatiq_jobs",
        worker=_DRAMATIQ_WORKER,
        requirements=_DRAMATIQ,
        environment=_DRAMATIQ_PREFETCH,
        by_default=True,
    ),
    Peer(
        name="huey-redis",
        title="Huey",
        engine="redis",
        program="huey_jobs",
        worker=_HUEY_WORKER,
        requirements=_HUEY,
        by_default=True,
    ),
    Peer(
        name="bullmq",
        title="BullMQ (Node)",
        engine="redis",
        program="bullmq_jobs.cjs",
        worker="node {programs}/bullmq_jobs.cjs work",
        copies=2,
        node=("bullmq@6.7.0", "ioredis@5.11.1"),
        by_default=True,
    ),
    Peer(
        name="rq",
        title="RQ",
        engine="redis",
        program="rq_jobs",
        worker="{bin}/rq worker --worker-class rq.worker.SimpleWorker --url {url} --quiet bench",
        copies=2,
        requirements=("rq==2.12.0", "hiredis"),
    ),
    Peer(
        name="arq",
        title="arq",
        engine="redis",
        program="arq_jobs",
        worker="{bin}/arq arq_jobs.WorkerSettings",
        copies=2,
        requirements=("arq==0.28.0", "hiredis", "uvloop"),
    ),
    Peer(
        name="saq-redis",
        title="SAQ",
        engine="redis",
        program="saq_jobs",
        worker=_SAQ_WORKER,
        requirements=_SAQ,
    ),
    Peer(
        name="saq-postgres",
        title="SAQ",
        engine="postgres",
        program="saq_jobs",
        worker=_SAQ_WORKER,
        requirements=_SAQ,
    ),
    Peer(
        name="taskiq-list",
        title="Taskiq, list",
        engine="redis",
        program="taskiq_jobs",
        worker=_TASKIQ_WORKER,
        requirements=_TASKIQ,
        environment={"BENCH_FORM": "list"},
    ),
    Peer(
        name="taskiq-stream",
        title="Taskiq, stream",
        engine="redis",
        program="taskiq_jobs",
        worker=_TASKIQ_WORKER,
        requirements=_TASKIQ,
        environment={"BENCH_FORM": "stream"},
    ),
    Peer(
        name="procrastinate",
        title="Procrastinate",
        engine="postgres",
        program="procrastinate_jobs",
        worker="{bin}/procrastinate --app procrastinate_jobs.app worker -c 50 --delete-jobs successful",
        copies=2,
        requirements=("procrastinate==3.10.0",),
    ),
    Peer(
        name="graphile",
        title="Graphile Worker (Node)",
        engine="postgres",
        program="graphile_jobs.cjs",
        worker="node {programs}/graphile_jobs.cjs work",
        copies=2,
        node=("graphile-worker@0.17.3",),
    ),
    Peer(
        name="celery-rabbitmq",
        title="Celery",
        engine="rabbitmq",
        program="celery_jobs",
        worker=_CELERY_WORKER,
        requirements=_CELERY,
    ),
    Peer(
        name="dramatiq-rabbitmq",
        title="Dramatiq",
        engine="rabbitmq",
        program="dramatiq_jobs",
        worker=_DRAMATIQ_WORKER,
        requirements=_DRAMATIQ,
        environment=_DRAMATIQ_PREFETCH,
    ),
)
PEERS: dict[str, Peer] = {peer.name: peer for peer in _ALL}
"""By the name that the command takes."""
