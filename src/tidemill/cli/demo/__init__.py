"""`tidemill demo`: everything at work in a temporary store, with real worker processes."""

import re
from typing import Any

import click

from tidemill.cli.program import debug_option
from tidemill.task.settings.rules import seconds
from tidemill.task.settings.setting import BadValue

_WORK = re.compile(r"(?P<least>[\d.]+)\s*(?P<unit>ms|s|m)?\s*\.\.\s*(?P<most>.+)")
LONGEST_WORK_S = 600.0
FASTEST = 2_000.0


class ShareType(click.ParamType):  # type: ignore[type-arg]
    """A share: 10% or 0.1."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value)
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = -1
        if not 0 <= share <= 1:
            self.fail(f"{value!r} is not a share such as 10%", param, ctx)
        return share


class WorkType(click.ParamType):  # type: ignore[type-arg]
    """How long a job works: 1..4s, or 2s."""

    name = "length"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        read = seconds(0, LONGEST_WORK_S)
        found = _WORK.fullmatch(str(value).strip())
        try:
            if found is None:
                return (read(value), read(value))
            unit = found["unit"] or found["most"].strip().lstrip("0123456789. ")
            least, most = read(found["least"] + unit), read(found["most"])
        except BadValue as error:
            self.fail(f"{value!r} is not {error} (or a range, 1..4s)", param, ctx)
        if least > most:
            self.fail(f"{value!r} goes from more to less", param, ctx)
        return (least, most)


@click.command()
@click.option("--load", is_flag=True, help="A steady stream of jobs to watch, until Ctrl-C.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0.1, max=FASTEST),
    default=5.0,
    show_default=True,
    help="With --load: jobs a second.",
)
@click.option(
    "--fail", type=ShareType(), default="10%", show_default=True, help="With --load: how many attempts fail."
)
@click.option(
    "--work", type=WorkType(), default="1..4s", show_default=True, help="With --load: how long a job works."
)
@debug_option
def demo(load: bool, rate: float, fail: float, work: tuple[float, float]) -> int:
    """See it work, in about 20 seconds.

    In a temporary store (a file, or a namespace of its own on the server that TIDEMILL_URL names, dropped at
    the end): jobs that succeed, wait, fail once, fail for good, run past their timeout, and one
    whose worker process is killed with -9 in the middle. At the end the dead letters, and the count of lost
    jobs as the engine knows it; the exit code is 0 only if that is 0.
    """
    context = click.get_current_context()
    sources = (context.get_parameter_source(name) for name in ("rate", "fail", "work"))
    if not load and any(source is not click.core.ParameterSource.DEFAULT for source in sources):
        raise click.UsageError("--rate, --fail and --work belong to --load")
    from tidemill.cli.demo.stage import play

    if load:
        from tidemill.cli.demo.load import Load

        return play(Load(rate, fail, work).run, processes=2, slots=slots_for(rate, work))
    from tidemill.cli.demo.story import play_story

    return play(play_story, processes=2, slots=4)


def slots_for(rate: float, work: tuple[float, float]) -> int:
    """Slots of each of two processes that keep up with the stream, failures and all."""
    return min(500, max(4, round(0.75 * rate * sum(work) / 2) + 2))
