"""A lost reply strands nothing: every method is called, its answer thrown away, and called again.

The repeat has to answer what the method's docstring says, and everything that can be seen must be as it was
after one call.
"""

import inspect
from types import UnionType
from typing import get_args, get_type_hints

import pytest

from tidemill.engine import protocol
from tidemill.testing.contract.faults import cut_facets, cut_jobs  # noqa: F401  (they fill the table)
from tidemill.testing.contract.faults.cut import SCENARIOS, Stage, method_of
from tidemill.testing.contract.fixtures import Clock, Connect, a_claimant, snapshot


def facets() -> dict[str, type]:
    """The facets of `Engine` by name, and the two things that are no facet but have methods."""
    found: dict[str, type] = {"engine": protocol.Engine, "subscription": protocol.Subscription}
    for name, member in vars(protocol.Engine).items():
        if isinstance(member, property):
            hint = get_type_hints(member.fget)["return"]
            kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
            found.update((name, kind) for kind in kinds if getattr(kind, "_is_protocol", False))
    return found


def methods() -> set[str]:
    """Every method of the contract."""
    return {
        f"{facet}.{name}"
        for facet, kind in facets().items()
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


def test_every_method_of_the_contract_has_a_scenario() -> None:
    assert {"jobs.settle", "transactions.enqueue", "members.heartbeat", "engine.close"} <= methods()
    assert {method_of(name) for name in SCENARIOS} == methods()


@pytest.mark.row("A4")
@pytest.mark.parametrize("repeated_by", ["the same client", "another client"])
@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_repeat_is_answered_and_changes_nothing(
    connect: Connect, clock: Clock, name: str, repeated_by: str
) -> None:
    engine, observer = await connect(), await connect()
    stage = Stage(engine, clock, await a_claimant(engine, clock))
    cut = await SCENARIOS[name](stage)
    before = await snapshot(observer, clock)
    first = await cut.call(engine)
    once = await snapshot(observer, clock)
    assert (once != before) is cut.changes
    again = await cut.call(engine if repeated_by == "the same client" else await connect())
    assert again == cut.again(first)
    assert await snapshot(observer, clock) == once
