"""Why jobs are not running: for people a line for each reason, for machines the same as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidemill.cli.output.shapes import HolderJobShape, OpensShape, ReasonShape, WhyShape
from tidemill.cli.output.text import one_line, rfc3339
from tidemill.engine.protocol import WHY_LIMIT
from tidemill.model.ids import JobId, show_id
from tidemill.model.why.facts import WhyFacts
from tidemill.model.why.reasons import Reason, reasons_of

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine


async def facts_of(engine: "Engine", ids: Sequence[JobId]) -> list[WhyFacts | None]:
    """The facts of any number of jobs, in the order of the ids."""
    found: list[WhyFacts | None] = []
    for begin in range(0, len(ids), WHY_LIMIT):
        found += await engine.inspect.why(ids[begin : begin + WHY_LIMIT])
    return found


def why_lines(facts: WhyFacts) -> str:
    """A line for each reason."""
    return "\n".join(f"    {one_line(reason.sentence)}" for reason in reasons_of(facts))


def why_shape(facts: WhyFacts) -> WhyShape:
    """A job with its reasons."""
    return WhyShape(id=show_id(facts.job.id), state=facts.job.state.value, reasons=reason_shapes(facts))


def reason_shapes(facts: WhyFacts) -> list[ReasonShape]:
    return [_shape(reason) for reason in reasons_of(facts)]


def _shape(reason: Reason) -> ReasonShape:
    return ReasonShape(
        kind=reason.kind.value,
        sentence=reason.sentence,
        since=rfc3339(reason.since),
        until=rfc3339(reason.until),
        by=reason.by,
        why=reason.why,
        count=reason.count,
        more=reason.more,
        gate=reason.gate,
        limit=reason.limit,
        holders=[
            HolderJobShape(id=show_id(each.id), worker=each.member, since=rfc3339(each.since))
            for each in reason.holders
        ],
        opens=[OpensShape(what=each.what, name=each.name) for each in reason.opens],
    )
