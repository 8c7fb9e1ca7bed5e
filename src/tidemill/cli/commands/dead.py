"""`tidemill dead`: the dead letters. Jobs whose last attempt failed, kept with everything about them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tidemill.cli import exits
from tidemill.cli.bulk.bulk import Deed, bulk_options, carry_out, jobs_of
from tidemill.cli.commands.jobs import print_jobs, print_list, replaying
from tidemill.cli.options.payload import arguments
from tidemill.cli.options.picking import (
    IdType,
    filter_options,
    ids_argument,
    json_option,
    limit_option,
    unless_all,
)
from tidemill.cli.options.where import Where, operator, where_options, with_engine
from tidemill.cli.output.group_text import print_groups
from tidemill.cli.output.shapes import AnswerShape
from tidemill.cli.output.text import json_line
from tidemill.cli.program import refuse
from tidemill.model.ids import JobId, show_id
from tidemill.model.jobs.job import JobRecord, JobState, ReplayAnswer
from tidemill.model.view import PAGE_LIMIT, DeadGroup, JobFilter

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine

DEAD = JobState.DEAD


@click.group()
def dead() -> None:
    """Dead letters: jobs whose last attempt failed, kept with payload, errors and times."""


@dead.command()
@filter_options(state=DEAD)
@limit_option
@json_option
@where_options
def ls(where: Where, only: JobFilter, limit: int | None, as_json: bool) -> None:
    """List dead letters, the newest of each queue first."""
    with_engine(where, lambda engine: print_list(engine, only, limit, as_json))


@dead.command()
@click.option("-q", "--queue", metavar="NAME", help="Only of this queue.")
@click.option("--task", metavar="NAME", help="Only of this task.")
@limit_option
@json_option
@where_options
def groups(where: Where, queue: str | None, task: str | None, limit: int | None, as_json: bool) -> None:
    """Group dead letters by what they died of: same task, same error, same place in the code.

    The largest groups come first. `--group NAME` of `ls`, `replay` and `drop` means the jobs of one."""
    found = with_engine(where, lambda engine: _all_groups(engine, queue, task))
    print_groups(found, limit, as_json)


@dead.command()
@click.argument("ids", nargs=-1, required=True, type=IdType(), metavar="ID...")
@click.option("--log", "with_log", is_flag=True, help="Also what the job wrote to its log.")
@json_option
@where_options
def show(where: Where, ids: Sequence[JobId], with_log: bool, as_json: bool) -> int:
    """Show dead letters in full: payload, times, worker, each failure with its traceback."""
    return with_engine(where, lambda engine: print_jobs(engine, ids, with_log, as_json, DEAD))


@dead.command()
@ids_argument
@filter_options(state=DEAD)
@bulk_options
@click.option(
    "--edit",
    metavar="JSON",
    multiple=True,
    help="With one id: run it with these arguments, given as for `enqueue`; may be repeated.",
)
@json_option
@where_options
def replay(
    where: Where,
    ids: Sequence[JobId],
    only: JobFilter,
    everything: bool,
    yes: bool,
    edit: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run dead letters again: one, many, or all of a filter.

    They become ready at once, at the end of their line. Attempts start again at 0; the id and the
    history stay, also with --edit."""
    if edit:
        if len(ids) != 1:
            raise click.UsageError("--edit takes exactly one id: other arguments belong to one job")
        return _replay_edited(where, ids[0], edit, as_json)
    deed = _only_dead(replaying()) if ids else replaying()
    return carry_out(
        where, deed, ids=ids, only=unless_all(only), everything=everything, yes=yes, as_json=as_json
    )


@dead.command()
@ids_argument
@filter_options(state=DEAD)
@bulk_options
@json_option
@where_options
def drop(
    where: Where, ids: Sequence[JobId], only: JobFilter, everything: bool, yes: bool, as_json: bool
) -> int:
    """Delete dead letters for good: one, many, or all of a filter."""
    by = operator()

    async def act(engine: "Engine", some: Sequence[JobId]) -> list[str]:
        return [answer.value for answer in await engine.jobs.drop(some, by=by)]

    deed = Deed("Drop", act, frozenset({"dropped"}), (DEAD,))
    deed = _only_dead(deed) if ids else deed
    return carry_out(
        where, deed, ids=ids, only=unless_all(only), everything=everything, yes=yes, as_json=as_json
    )


async def _all_groups(engine: "Engine", queue: str | None, task: str | None) -> list[DeadGroup]:
    """Every group, the largest first."""
    found: list[DeadGroup] = []
    cursor = None
    while True:
        page = await engine.inspect.dead_groups(queue=queue, task=task, cursor=cursor, limit=PAGE_LIMIT)
        found += page.groups
        cursor = page.cursor
        if cursor is None:
            return sorted(found, key=lambda group: (-group.count, -group.last_at, group.queue, group.name))


def _only_dead(deed: Deed) -> Deed:
    """The same, for jobs that are dead letters; others are left alone and named by their state."""

    async def act(engine: "Engine", some: Sequence[JobId]) -> list[str]:
        found = dict(zip(some, await jobs_of(engine, some), strict=True))
        chosen = [job_id for job_id in dict.fromkeys(some) if (job := found[job_id]) and job.state is DEAD]
        done = dict(zip(chosen, await deed.act(engine, chosen), strict=True)) if chosen else {}
        return [done[job_id] if job_id in done else _not_dead(found[job_id]) for job_id in some]

    return deed._replace(act=act)


def _not_dead(job: JobRecord | None) -> str:
    return "unknown" if job is None else f"{job.state}, not dead"


def _replay_edited(where: Where, job_id: JobId, edit: tuple[str, ...], as_json: bool) -> int:
    """The same job with other arguments."""
    from tidemill.app.operating.replaying import replay_edited

    args, kwargs = arguments(edit)
    job = with_engine(where, lambda engine: _read_job(engine, job_id))
    app = where.application()
    try:
        answer = replay_edited(app, job, args, kwargs, by=operator())
    finally:
        app.close()
    if as_json:
        json_line(AnswerShape(show_id(job_id), answer.value))
    else:
        with_these = " with these arguments" if answer is ReplayAnswer.REPLAYED else ""
        click.echo(f"{show_id(job_id)} {answer.value}{with_these}")
    return exits.DONE if answer is ReplayAnswer.REPLAYED else exits.PARTLY


async def _read_job(engine: "Engine", job_id: JobId) -> JobRecord:
    [job] = await engine.inspect.get([job_id])
    if job is None:
        raise refuse(f"{show_id(job_id)}: there is no such job")
    if job.state is not DEAD:
        raise refuse(f"{show_id(job_id)}: {_not_dead(job)}")
    return job
