"""A plan is a pure function of its seed."""

from collections import Counter

from tests.chaos.faults import FAULTS, kinds_for
from tests.chaos.plan import make_plan
from tests.chaos.stores import STORES

KINDS = list(FAULTS)


def test_the_same_seed_makes_the_same_plan() -> None:
    assert make_plan(7, KINDS, 60) == make_plan(7, KINDS, 60)
    assert make_plan(7, KINDS, 60) == make_plan(7, list(reversed(KINDS)), 60)
    assert make_plan(7, KINDS, 60) != make_plan(8, KINDS, 60)


def test_every_fault_comes_up_alone_and_with_others() -> None:
    plan = make_plan(1, KINDS, 1_200)
    times = Counter(step.kind for step in plan)
    assert set(times) == set(KINDS)
    assert max(times.values()) - min(times.values()) <= 1
    together = {(round(one.at_s), round(other.at_s)) for one in plan for other in plan if one is not other}
    assert any(abs(one - other) <= 1 for one, other in together)


def test_every_engine_has_the_faults_it_can_have() -> None:
    every = {engine: set(kinds_for(store.able, root=True)) for engine, store in STORES.items()}
    assert set.union(*every.values()) == set(KINDS)
    assert every["sqlite"] < every["postgres"]
    assert "no memory" in every["redis"]
    assert "disk full" not in kinds_for(STORES["redis"].able, root=False)
