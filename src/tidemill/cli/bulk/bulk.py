"""Doing something to many jobs: by id, or to all that a filter matches, after a preview.

A filter's jobs are walked by the engine's cursor: what is changed leaves the listing, what stays is neither
skipped nor met twice, and finished jobs come newest first, so that a replayed job that dies again at once is
not replayed again by the same command.
"""

import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from msgspec.structs import replace

from tidemill.cli import exits
from tidemill.cli.bulk.preview import Estimate, estimate, preview
from tidemill.cli.options.picking import narrows, pages
from tidemill.cli.options.where import Where, with_engine
from tidemill.cli.output.shapes import AnswerShape, BulkShape
from tidemill.cli.output.text import count, is_terminal, json_line
from tidemill.model.errors import EngineUnavailable
from tidemill.model.ids import JobId, show_id
from tidemill.model.jobs.job import JobRecord, JobState
from tidemill.model.view import JobFilter

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine

CHUNK = 500
"""Jobs of one engine call: half its limit, so that a bar moves and other writers get their turn."""

F = TypeVar("F", bound=Callable[..., Any])

Act = Callable[["Engine", Sequence[JobId]], Awaitable[list[str]]]
"""Does it to some jobs and answers, in their order, what became of each."""


class Deed(NamedTuple):
    """Something that is done to jobs."""

    verb: str
    """Replay, Drop, ..."""
    act: Act
    good: frozenset[str]
    """The answers that mean it was done."""
    states: tuple[JobState, ...]
    """The states of the jobs that a filter matches."""


def bulk_options(command: F) -> F:
    """`--all` and `--yes`."""
    command = click.option("--yes", is_flag=True, help="Do not ask before a filter's jobs are changed.")(
        command
    )
    return click.option(
        "--all", "everything", is_flag=True, help="Every job, as far as no filter says otherwise."
    )(command)


def carry_out(
    where: Where,
    deed: Deed,
    *,
    ids: Sequence[JobId],
    only: JobFilter,
    everything: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Do it to the ids, or to what the filter matches. Answers the exit code."""
    filtered = narrows(only) or only.state is not None
    if ids and (filtered or everything):
        raise click.UsageError("give ids or a filter, not both")
    if ids:
        answers = with_engine(where, lambda engine: _by_id(engine, deed, ids))
        return _show_answers(ids, answers, deed, as_json)
    if not filtered and not everything:
        raise click.UsageError("which jobs? give ids, a filter such as --queue or --task, or --all")
    if only.state is not None and only.state not in deed.states:
        raise click.UsageError(
            f"{deed.verb.lower()} is for jobs that are {_listed(deed.states)}, not {only.state}"
        )
    filters = [only] if only.state else [replace(only, state=state) for state in deed.states]
    found = with_engine(where, lambda engine: estimate(engine, filters))
    if found.jobs and not yes:
        with_engine(where, lambda engine: preview(engine, filters, found))
        _confirm(f"{deed.verb} {found}?")
    done = with_engine(where, lambda engine: _by_filter(engine, deed, filters, found)) if found.jobs else {}
    return _sum_up(done, deed, as_json)


def _listed(states: Sequence[JobState]) -> str:
    return " or ".join(state.value for state in states)


async def _by_id(engine: "Engine", deed: Deed, ids: Sequence[JobId]) -> list[str]:
    answers: list[str] = []
    for begin in range(0, len(ids), CHUNK):
        answers += await deed.act(engine, ids[begin : begin + CHUNK])
    return answers


async def _by_filter(
    engine: "Engine", deed: Deed, filters: Sequence[JobFilter], found: Estimate
) -> Counter[str]:
    answers: Counter[str] = Counter()
    with _bar(deed.verb, found) as advance:
        try:
            for only in filters:
                async for jobs in pages(engine, only):
                    for begin in range(0, len(jobs), CHUNK):
                        chunk = [job.id for job in jobs[begin : begin + CHUNK]]
                        answers.update(await deed.act(engine, chunk))
                        advance(len(chunk))
        except EngineUnavailable as error:
            done = f"{count(answers.total(), 'job')} had been done before; the same command does the rest"
            raise type(error)(f"{error} ({done})") from error
    return answers


def _confirm(question: str) -> None:
    if not is_terminal(sys.stdin):
        raise click.UsageError("nobody can be asked here: add --yes to go on")
    if not click.confirm(question, err=True):
        raise click.ClickException("nothing was changed")


@contextmanager
def _bar(verb: str, found: Estimate) -> Iterator[Callable[[int], None]]:
    if not is_terminal(sys.stderr):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(verb, total=found.jobs if found.exact else None)
        yield lambda jobs: progress.advance(bar, jobs)


def _show_answers(ids: Sequence[JobId], answers: Sequence[str], deed: Deed, as_json: bool) -> int:
    for job_id, answer in zip(ids, answers, strict=True):
        if as_json:
            json_line(AnswerShape(show_id(job_id), answer))
        else:
            click.echo(f"{show_id(job_id)} {answer}", err=answer not in deed.good)
    return exits.DONE if deed.good.issuperset(answers) else exits.PARTLY


def _sum_up(answers: Counter[str] | dict[str, int], deed: Deed, as_json: bool) -> int:
    if as_json:
        json_line(BulkShape(sum(answers.values()), dict(answers)))
    elif not answers:
        click.echo("no job matches")
    for answer, jobs in answers.items() if not as_json else ():
        click.echo(f"{count(jobs, 'job')}: {answer}")
    return exits.DONE if deed.good.issuperset(answers) else exits.PARTLY


async def cleared(engine: "Engine", jobs: Sequence[JobId], by: str) -> list[str]:
    """Take jobs away whatever their state: what waits is cancelled first, what runs is asked to stop."""
    dropped = [answer.value for answer in await engine.jobs.drop(jobs, by=by)]
    live = [job for job, answer in zip(jobs, dropped, strict=True) if answer == "live"]
    if not live:
        return dropped
    cancelled = await engine.jobs.cancel(live, by=by)
    again = iter(await engine.jobs.drop(live, by=by))
    answers = iter(cancelled)
    return [
        _after_cancel(next(answers).value, next(again).value) if answer == "live" else answer
        for answer in dropped
    ]


def _after_cancel(cancelled: str, dropped: str) -> str:
    return cancelled if dropped == "live" else dropped


async def jobs_of(engine: "Engine", ids: Sequence[JobId]) -> list[JobRecord | None]:
    """Full records, in the order of the ids."""
    found: list[JobRecord | None] = []
    for begin in range(0, len(ids), CHUNK):
        found += await engine.inspect.get(ids[begin : begin + CHUNK])
    return found
