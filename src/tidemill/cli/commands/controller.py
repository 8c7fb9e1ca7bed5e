"""`tidemill controller`: a member that runs no jobs and stands for controller."""

from typing import Any

import click

from tidemill.cli.commands.worker import OF_CONTROLLER, but, config_of, configured, member_options
from tidemill.task.settings import Settings


@click.command()
@member_options(OF_CONTROLLER)
def controller(app: str | None, app_option: str | None, parent_pipe: int | None, **given: Any) -> int:
    """Stand for controller, and do the chores of the cluster while elected; run no jobs.

    Workers stand too, unless started with --no-controller, so that a cluster needs no such process. Of all
    that stand one is elected; when it ends or dies, another takes over within a lease. APP is asked for its
    URL and namespace; with none named anywhere, the settings say where.

    SIGTERM or SIGINT: hand over at once, and end.

    \b
    Exit codes: 0 ended as told; 75 gave up on the engine.
    """
    import msgspec

    from tidemill.worker.member.parent_death import die_with_parent
    from tidemill.worker.member.supervisor import supervise

    if parent_pipe is not None:
        die_with_parent(parent_pipe)
    named = Settings.load(given_as="the argument APP", app=app or app_option).app
    config = config_of(but(Settings.load(), given)) if named is None else configured(named, given)
    return supervise(msgspec.structs.replace(config, roles=("controller",)))
