"""The `tidemill` command.

Each command is a module of this package, imported when it is asked for: `tidemill --version` takes as long
as click does. A command does the work of one invocation in `asyncio.run` over an engine of its own and
returns its exit code (`exits`); errors become one line on standard error (`program`).
"""

import click

from tidemill.cli.program import CommandLine, Commands, debug_option
from tidemill.model.version import __version__

COMMANDS = {
    "bench": "tidemill.cli.bench:bench",
    "config": "tidemill.cli.commands.config:config",
    "controller": "tidemill.cli.commands.controller:controller",
    "dead": "tidemill.cli.commands.dead:dead",
    "demo": "tidemill.cli.demo:demo",
    "doctor": "tidemill.cli.commands.doctor:doctor",
    "enqueue": "tidemill.cli.commands.enqueue:enqueue",
    "events": "tidemill.cli.commands.events:events",
    "jobs": "tidemill.cli.commands.jobs:jobs",
    "members": "tidemill.cli.commands.members:members",
    "migrate": "tidemill.cli.commands.migrate:migrate",
    "queues": "tidemill.cli.commands.queues:queues",
    "scale": "tidemill.cli.commands.scale:scale",
    "schedules": "tidemill.cli.commands.schedules:schedules",
    "stats": "tidemill.cli.commands.stats:stats",
    "tasks": "tidemill.cli.commands.tasks:tasks",
    "worker": "tidemill.cli.commands.worker:worker",
    # of Tidemill's own, not listed
    "_child": "tidemill.cli.commands.children:child",
    "_runner": "tidemill.cli.commands.children:runner",
    "_worker_config": "tidemill.cli.commands.worker:worker_config",
}

__all__ = ["Commands", "main"]


@click.group(cls=CommandLine, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
@debug_option
def main() -> None:
    """Tidemill runs Python functions as jobs: now, later, every night, on any machine.

    State lives where TIDEMILL_URL points: a SQLite file by default (sqlite:///tidemill.db).

    \b
    Exit codes: 0 done; 1 not found, refused, or only partly done; 2 wrong usage or input;
    69 the engine cannot be reached; 70 a bug; 74 a file or the output cannot be written;
    75 a worker gave up on its engine; 78 the store cannot be used (not Tidemill's, damaged,
    another version); 130 interrupted.
    """
