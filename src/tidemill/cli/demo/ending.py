"""The end of the demo: the dead letters in full, and what was lost, as the engine knows it."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from tidemill.cli import exits
from tidemill.cli.output.job_text import brief, payload_text
from tidemill.cli.output.text import count, local, one_line
from tidemill.engine.protocol import Engine
from tidemill.model.ids import JobId, show_id
from tidemill.model.jobs.job import FINAL, JobRecord, JobState


async def show_the_end(engine: Engine, ids: Sequence[JobId], console: Console, *, complete: bool) -> int:
    """Print it; the exit code is 0 only if each job is there and has ended."""
    found = await engine.inspect.get(ids)
    kept = [job for job in found if job is not None]
    letters = [job for job in kept if job.state is JobState.DEAD]
    console.print()
    console.print(Text(f"{count(len(letters), 'dead letter')}:", style="bold"))
    for job in letters:
        console.print(Text(dead_letter(job)))
    console.print(Text(_sum(kept)))
    lost, open_ = len(ids) - len(kept), [job for job in kept if job.state not in FINAL]
    if open_ or not complete:
        console.print(Text(f"{count(len(open_), 'job')} had not ended when the demo did", style="yellow"))
    console.print(Text(f"{count(lost, 'job')} lost", style="bold red" if lost else "bold green"))
    return exits.PARTLY if lost or open_ or not complete else exits.DONE


def dead_letter(job: JobRecord) -> str:
    """One dead letter: everything needed to understand it, and to replay it."""
    facts = (
        ("id", show_id(job.id)),
        ("task", job.task),
        ("attempts", f"{job.attempts_begun}/{job.max_attempts}"),
        ("failed at", local(job.ended_at)),
        ("error", brief(job.error)),
        ("payload", payload_text(job)),
    )
    return "".join(f"  {name:<10} {one_line(value)}\n" for name, value in facts)


def _sum(jobs: Sequence[JobRecord]) -> str:
    states = [job.state for job in jobs]
    parts = [f"{states.count(state)} {state.value}" for state in JobState if state in states]
    return f"{count(len(jobs), 'job')} in the engine: {', '.join(parts)}"
