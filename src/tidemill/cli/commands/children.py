"""The commands that Tidemill gives its own processes. Not for people: they expect open file descriptors."""

import click


@click.command("_child", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def child(args: tuple[str, ...]) -> None:
    """One worker process of a supervisor."""
    from tidemill.app.loading import load_in_worker
    from tidemill.worker.process.main import main

    main(load_in_worker)


@click.command("_runner", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def runner(args: tuple[str, ...]) -> None:
    """One process that runs jobs for a worker."""
    from tidemill.app.loading import load_in_worker
    from tidemill.worker.runner.main import main

    main(load_in_worker)
