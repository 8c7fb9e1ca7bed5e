"""The `penstock` command.

Each command is a module of this package, imported when it is asked for: `penstock --version` takes as long
as click does. A command does the work of one invocation in `asyncio.run` over an engine of its own and
returns its exit code (`exits`); errors become one line on standard error (`program`).
"""

import click

from penstock.cli.program import Commands, Program, debug_option

COMMANDS = {
    "bench": "penstock.cli.bench:bench",
    "config": "penstock.cli.config:config",
    "controller": "penstock.cli.controller:controller",
    "dead": "penstock.cli.dead:dead",
    "demo": "penstock.cli.demo:demo",
    "doctor": "penstock.cli.doctor:doctor",
    "enqueue": "penstock.cli.enqueue:enqueue",
    "events": "penstock.cli.events:events",
    "jobs": "penstock.cli.jobs:jobs",
    "members": "penstock.cli.members:members",
    "migrate": "penstock.cli.migrate:migrate",
    "queues": "penstock.cli.queues:queues",
    "schedules": "penstock.cli.schedules:schedules",
    "stats": "penstock.cli.stats:stats",
    "worker": "penstock.cli.worker:worker",
    # of Penstock's own, not listed
    "_child": "penstock.cli.children:child",
    "_docs": "penstock.cli.reference:docs",
    "_runner": "penstock.cli.children:runner",
    "_worker_config": "penstock.cli.worker:worker_config",
}

__all__ = ["Commands", "main"]


@click.group(cls=Program, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="penstock", message="%(prog)s %(version)s")
@debug_option
def main() -> None:
    """Penstock runs Python functions as jobs: now, later, every night, on any machine.

    State lives where PENSTOCK_URL points: a SQLite file by default (sqlite:///penstock.db).

    \b
    Exit codes: 0 done; 1 not found, refused, or only partly done; 2 wrong usage or input;
    69 the engine cannot be reached; 70 a bug; 74 a file or the output cannot be written;
    75 a worker gave up on its engine; 78 the place cannot be used (not Penstock's, damaged,
    another version); 130 interrupted.
    """
