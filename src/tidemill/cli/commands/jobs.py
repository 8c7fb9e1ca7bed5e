"""`tidemill jobs`: look at jobs, run them again, stop them, take them away."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from msgspec import UNSET

from tidemill.cli import exits
from tidemill.cli.bulk.bulk import Deed, bulk_options, carry_out, cleared, jobs_of
from tidemill.cli.options.picking import (
    IdType,
    filter_options,
    ids_argument,
    json_option,
    limit_option,
    pages,
    unless_all,
)
from tidemill.cli.options.where import Where, operator, where_options, with_engine
from tidemill.cli.output.job_text import COLUMNS, log_line, print_whole, row
from tidemill.cli.output.shaping import job_shape
from tidemill.cli.output.text import Columns, json_line, one_line
from tidemill.cli.output.why_text import facts_of, reason_shapes, why_lines, why_shape
from tidemill.model.ids import JobId, show_id
from tidemill.model.jobs.job import FINAL, LIVE, JobRecord, JobState
from tidemill.model.view import JobFilter

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine


@click.group()
def jobs() -> None:
    """Look at jobs, run them again, stop them, take them away."""


@jobs.command()
@filter_options()
@limit_option
@json_option
@where_options
def ls(where: Where, only: JobFilter, limit: int | None, as_json: bool) -> None:
    """List jobs: by state and queue; ready ones in the order of their turn, finished ones newest first."""
    with_engine(where, lambda engine: print_list(engine, only, limit, as_json))


@jobs.command()
@click.argument("ids", nargs=-1, required=True, type=IdType(), metavar="ID...")
@click.option("--log", "with_log", is_flag=True, help="Also what the job wrote to its log.")
@json_option
@where_options
def show(where: Where, ids: Sequence[JobId], with_log: bool, as_json: bool) -> int:
    """Show everything about jobs: payload, times, worker, result, each failure with its traceback."""
    return with_engine(where, lambda engine: print_jobs(engine, ids, with_log, as_json))


@jobs.command()
@click.argument("ids", nargs=-1, required=True, type=IdType(), metavar="ID...")
@json_option
@where_options
def why(where: Where, ids: Sequence[JobId], as_json: bool) -> int:
    """Say why jobs are not running: what each waits for, or since when it runs, or how it ended."""
    return with_engine(where, lambda engine: print_why(engine, ids, as_json))


@jobs.command()
@ids_argument
@filter_options()
@bulk_options
@json_option
@where_options
def retry(
    where: Where, ids: Sequence[JobId], only: JobFilter, everything: bool, yes: bool, as_json: bool
) -> int:
    """Run finished jobs again: dead, cancelled or completed ones by id or by --state; other filters and --all
    mean the dead ones unless --state says otherwise.

    They become ready at once, at the end of their line. Attempts start again at 0; the history stays."""
    deed = replaying(states=FINAL if only.state else (JobState.DEAD,))
    return carry_out(where, deed, ids=ids, only=only, everything=everything, yes=yes, as_json=as_json)


@jobs.command("run")
@ids_argument
@filter_options(state=JobState.SCHEDULED)
@bulk_options
@json_option
@where_options
def run_now(
    where: Where, ids: Sequence[JobId], only: JobFilter, everything: bool, yes: bool, as_json: bool
) -> int:
    """Run scheduled jobs now, by id or by filter: those that wait for a retry too.

    They become ready at once, at the end of their line."""
    by = operator()

    async def act(engine: "Engine", some: Sequence[JobId]) -> list[str]:
        return [answer.value for answer in await engine.jobs.run_now(some, by=by)]

    # by a filter, one whose time has come in the meantime is no failure
    good = {"ready"} if ids else {"ready", "running", "finished"}
    deed = Deed("Run", act, frozenset(good), (JobState.SCHEDULED,))
    return carry_out(
        where, deed, ids=ids, only=unless_all(only), everything=everything, yes=yes, as_json=as_json
    )


@jobs.command()
@ids_argument
@filter_options()
@bulk_options
@json_option
@where_options
def cancel(
    where: Where, ids: Sequence[JobId], only: JobFilter, everything: bool, yes: bool, as_json: bool
) -> int:
    """Stop jobs, by id or by filter. What has not started never starts; what runs is told to stop."""
    by = operator()

    async def act(engine: "Engine", some: Sequence[JobId]) -> list[str]:
        return [answer.value for answer in await engine.jobs.cancel(some, by=by)]

    # by a filter, one that has finished in the meantime is no failure
    good = {"cancelled", "asked"} if ids else {"cancelled", "asked", "finished"}
    deed = Deed("Cancel", act, frozenset(good), LIVE)
    return carry_out(where, deed, ids=ids, only=only, everything=everything, yes=yes, as_json=as_json)


@jobs.command()
@ids_argument
@filter_options()
@bulk_options
@json_option
@where_options
def clear(
    where: Where, ids: Sequence[JobId], only: JobFilter, everything: bool, yes: bool, as_json: bool
) -> int:
    """Take jobs away for good, by id or by filter: a queue's, a state's, or all.

    What waits is cancelled and deleted, what has finished is deleted, what runs is only told to stop."""
    by = operator()

    async def act(engine: "Engine", some: Sequence[JobId]) -> list[str]:
        return await cleared(engine, some, by)

    good = {"dropped", "asked"} if ids else {"dropped", "asked", "unknown"}
    deed = Deed("Clear", act, frozenset(good), tuple(JobState))
    return carry_out(where, deed, ids=ids, only=only, everything=everything, yes=yes, as_json=as_json)


def replaying(states: tuple[JobState, ...] = (JobState.DEAD,)) -> Deed:
    """Replay, once per job whatever is repeated: the token belongs to this invocation."""
    by, token = operator(), os.urandom(16)

    async def act(engine: "Engine", some: Sequence[JobId]) -> list[str]:
        return [answer.value for answer in await engine.jobs.replay(some, token=token, by=by)]

    return Deed("Replay", act, frozenset({"replayed"}), states)


async def print_list(engine: "Engine", only: JobFilter, limit: int | None, as_json: bool) -> None:
    """A listing, page by page."""
    listing = Columns(*COLUMNS)
    shown = 0
    async for page in pages(engine, only, limit):
        shown += len(page)
        if as_json:
            for job in page:
                json_line(job_shape(job))
        else:
            listing.print(map(row, page))
    if not as_json:
        _end_of_list(shown, limit)


def _end_of_list(shown: int, limit: int | None) -> None:
    if not shown:
        click.echo("no job matches", err=True)
    elif shown == limit:
        click.echo(f"the first {shown:,}; --limit all shows all", err=True)


async def print_jobs(
    engine: "Engine", ids: Sequence[JobId], with_log: bool, as_json: bool, state: JobState | None = None
) -> int:
    """Jobs in full; 1 if one was not found (or, with `state`, is in another)."""
    from tidemill.app.reading.unserved import problems_of

    found = await jobs_of(engine, ids)
    problems, whys = await problems_of(engine, found), await facts_of(engine, ids)
    first = True
    for job_id, job, problem, facts in zip(ids, found, problems, whys, strict=True):
        if job is None or (state is not None and job.state is not state):
            why = "there is no such job" if job is None else f"it is {job.state}, not {state}"
            click.echo(f"tidemill: {show_id(job_id)}: {why}", err=True)
        elif as_json:
            json_line(job_shape(job, whole=True, why=UNSET if facts is None else reason_shapes(facts)))
        else:
            if not first:
                click.echo()
            print_whole(job)
            first = False
            if facts is not None and job.state in LIVE:
                click.echo(f"\nwhy\n{why_lines(facts)}")
            if with_log:
                await _print_log(engine, job)
        if problem is not None:
            click.secho(f"warning: {show_id(job_id)}: {one_line(problem)}", fg="yellow", err=True)
    good = all(job is not None and state in (None, job.state) for job in found)
    return exits.DONE if good else exits.PARTLY


async def print_why(engine: "Engine", ids: Sequence[JobId], as_json: bool) -> int:
    """Each job with its reasons; 1 if one was not found."""
    found = await facts_of(engine, ids)
    for job_id, facts in zip(ids, found, strict=True):
        if facts is None:
            click.echo(f"tidemill: {show_id(job_id)}: there is no such job", err=True)
        elif as_json:
            json_line(why_shape(facts))
        else:
            job = facts.job
            click.echo(one_line(f"{show_id(job_id)} {job.state.value}, task {job.task}, queue {job.queue}"))
            click.echo(why_lines(facts))
    return exits.DONE if all(found) else exits.PARTLY


async def _print_log(engine: "Engine", job: JobRecord) -> None:
    written = await engine.inspect.log(job.id)
    click.echo("\nlog" if written else "\nlog: empty")
    for line in written:
        click.echo("    " + log_line(line))
