"""A plan is a pure function of its seed."""

from collections import Counter

from tests.chaos.faults import FAULTS, kinds_for
from tests.chaos.plan import HOST_DEATHS, PROCESS_DEATH, make_plan
from tests.chaos.stores import STORES
from tests.chaos.times import Times

KINDS = list(FAULTS)


def test_the_same_seed_makes_the_same_plan() -> None:
    assert make_plan(7, KINDS, 60) == make_plan(7, KINDS, 60)
    assert make_plan(7, KINDS, 60) == make_plan(7, list(reversed(KINDS)), 60)
    assert make_plan(7, KINDS, 60) != make_plan(8, KINDS, 60)


def test_every_fault_comes_up_alone_and_with_others() -> None:
    plan = make_plan(1, KINDS, 1_200)
    times = Counter(step.kind for step in plan)
    assert set(times) == set(KINDS)
    often = [count for kind, count in times.items() if kind not in (PROCESS_DEATH, *HOST_DEATHS)]
    assert max(often) - min(often) <= 1
    together = {(round(one.at_s), round(other.at_s)) for one in plan for other in plan if one is not other}
    assert any(abs(one - other) <= 1 for one, other in together)


def test_a_long_run_has_deaths_while_nothing_else_is_wrong() -> None:
    times = Times()
    for seed in range(5):
        plan = sorted(make_plan(seed, KINDS, 600), key=lambda step: step.at_s)
        alone = {PROCESS_DEATH: 0, "host": 0}
        for step in plan:
            kind = "host" if step.kind in HOST_DEATHS else step.kind
            bound_s = times.host_bound_s if kind == "host" else times.process_bound_s
            begin, end = step.at_s - times.lease_s, step.at_s + bound_s + times.slack_s
            others = [one for one in plan if one is not step]
            if kind in alone and not any(
                one.at_s < end and one.at_s + one.length_s > begin for one in others
            ):
                alone[kind] += 1
        assert min(alone.values()) >= 5


def test_every_engine_has_the_faults_it_can_have() -> None:
    every = {engine: set(kinds_for(store.able, root=True)) for engine, store in STORES.items()}
    assert set.union(*every.values()) == set(KINDS)
    assert every["sqlite"] < every["postgres"]
    assert "no memory" in every["redis"]
    assert "disk full" not in kinds_for(STORES["redis"].able, root=False)
