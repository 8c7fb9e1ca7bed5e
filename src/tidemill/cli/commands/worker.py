"""`tidemill worker`: run jobs.

The process that a user starts becomes the supervisor and never imports the application: a module that starts
threads, or dies on import, must not take the one process that looks after the others. So the configuration,
which the application's code has a say in, is worked out by a child (`tidemill _worker_config`) and read back
as JSON; workers import the application themselves.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidemill.cli.options.where import load
from tidemill.cli.program import debug_option, debugging
from tidemill.model.errors import BadInput
from tidemill.task.settings import Settings

if TYPE_CHECKING:
    from tidemill.worker.config import Role, WorkerConfig

F = TypeVar("F", bound=Callable[..., Any])

SHORT = {"processes": "-p", "slots": "-c", "queues": "-q", "namespace": None, "url": None}
BY_OPTION = (
    *SHORT,
    "scale_wait",
    "scale_calm",
    "recycle_after_jobs",
    "recycle_above_mb",
    "shutdown_timeout",
    "cancel_grace",
    "heartbeat",
    "lease",
    "sweep",
    "give_up_after",
    "log_format",
)
"""The settings that are options of a worker."""
SINGULAR = {"queues": "queue"}
OF_CONTROLLER = ("namespace", "url", "heartbeat", "lease", "sweep", "give_up_after", "log_format")
"""Those that a controller has too."""


def _long(name: str) -> str:
    return "--" + SINGULAR.get(name, name).replace("_", "-")


def worker_options(command: F) -> F:
    """APP, and an option for each setting that a worker has."""
    no_controller = click.option(
        "--no-controller", is_flag=True, help="Do not stand for controller: only run jobs."
    )
    return member_options(BY_OPTION)(no_controller(command))


def member_options(names: Sequence[str]) -> Callable[[F], F]:
    """APP, and an option for each of these settings."""
    return lambda command: _with_options(command, names)


def _with_options(command: F, names: Sequence[str]) -> F:
    for name in reversed(names):
        entry = Settings.table()[name]
        default = f" [{entry.default}]" if entry.default else ""
        command = click.option(
            *filter(None, (SHORT.get(name), _long(name))),
            name,
            metavar={"queues": "NAME"}.get(name, "VALUE"),
            multiple=name == "queues",
            help=("Take from this queue only; may be repeated." if name == "queues" else entry.about)
            + default,
        )(command)
    # the process that starts a worker for its own use (the demo) takes it along when it dies
    command = click.option("--parent-pipe", type=int, hidden=True)(command)
    command = click.option("-A", "--app", "app_option", metavar="APP", help="The same as the argument APP.")(
        command
    )
    return click.argument("app", required=False, metavar="[APP]")(debug_option(command))


@click.command()
@worker_options
def worker(
    app: str | None, app_option: str | None, parent_pipe: int | None, no_controller: bool, **given: Any
) -> int:
    """Run the jobs of APP (module:attribute): a supervisor with worker processes.

    Unless told otherwise it also stands for controller: of all that do, one is elected and does the chores of
    the cluster (schedules, retention).

    SIGTERM or SIGINT: nothing new is taken, running jobs finish (up to --shutdown-timeout, then they are
    handed back); a second one hurries, a third one kills.

    \b
    Exit codes: 0 all finished; 1 some jobs were handed back; 75 gave up on the engine.
    """
    import msgspec

    from tidemill.worker.member.parent_death import die_with_parent
    from tidemill.worker.member.supervisor import supervise

    if parent_pipe is not None:
        die_with_parent(parent_pipe)
    config = configured(app or app_option, given)
    roles: tuple[Role, ...] = ("worker",) if no_controller else ("worker", "controller")
    return supervise(msgspec.structs.replace(config, roles=roles))


@click.command(hidden=True)
@member_options(BY_OPTION)
@click.option("--url-on-stdin", is_flag=True)
def worker_config(
    app: str | None, app_option: str | None, parent_pipe: None, url_on_stdin: bool, **given: Any
) -> None:
    """Print, as JSON, the configuration of the worker that these options ask for."""
    import msgspec

    if url_on_stdin:
        given["url"] = sys.stdin.read()
    click.echo(msgspec.json.encode(work_out(app or app_option, given)).decode())


def configured(app: str | None, given: dict[str, Any]) -> "WorkerConfig":
    """The configuration that a child has worked out; if that failed, its words and its exit code are ours."""
    import msgspec

    from tidemill.worker.config import WorkerConfig

    # A URL may hold a password, and every user can read the arguments of a process: it goes by a pipe.
    url = given.get("url")
    options = [*_written({**given, "url": None}), *(["--url-on-stdin"] if url else [])]
    if debugging():
        options.append("--debug")
    command = [sys.executable, "-m", "tidemill", "_worker_config", *options, *([app] if app else [])]
    child = subprocess.run(command, input=(url or "").encode(), stdout=subprocess.PIPE, check=False)
    if child.returncode:
        raise click.exceptions.Exit(child.returncode)
    # The application may print while it is imported: the configuration is the last line.
    return msgspec.json.decode(child.stdout.splitlines()[-1], type=WorkerConfig)


def _written(given: dict[str, Any]) -> Iterator[str]:
    """The options as they stand on a command line."""
    for name, value in given.items():
        for text in value if isinstance(value, tuple) else () if value is None else (value,):
            yield f"{_long(name)}={text}"


def work_out(spec: str | None, given: dict[str, Any]) -> "WorkerConfig":
    """The configuration by options, the application's settings, and the other settings."""
    named = Settings.load(given_as="the argument APP", app=spec).app
    if named is None:
        raise BadInput("which application? give APP (module:attribute), or set TIDEMILL_APP")
    app = load(named)
    for definition in app.registry.definitions():
        definition.signature.check()
    settings = but(app.settings, given)
    return config_of(settings, app=named, queues=settings.queues or app.registry.queue_names())


def but(settings: Settings, given: dict[str, Any]) -> Settings:
    """The settings, with the options that were really given."""
    said = {name: value for name, value in given.items() if value not in (None, ())}
    return settings.but(given_as="option --{name}", **said)


def config_of(settings: Settings, **more: Any) -> "WorkerConfig":
    """As the settings say."""
    from tidemill.worker.config import WorkerConfig

    return WorkerConfig(
        url=settings.url,
        namespace=settings.namespace,
        slots=settings.slots,
        processes=settings.processes.least,
        processes_most=settings.processes.most if settings.processes.varies else None,
        scale_wait_s=settings.scale_wait,
        scale_calm_s=settings.scale_calm,
        recycle_after_jobs=settings.recycle_after_jobs,
        recycle_above_mb=settings.recycle_above_mb,
        heartbeat_s=settings.heartbeat,
        lease_s=settings.lease,
        sweep_s=settings.sweep,
        give_up_after=settings.give_up_after,
        shutdown_timeout_s=settings.shutdown_timeout,
        cancel_grace_s=settings.cancel_grace,
        log_format=settings.log_format,
        **more,
    )
