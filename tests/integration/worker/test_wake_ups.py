"""What wakes a worker."""

from typing import Any

import pytest

from penstock.model.job import JobState
from tests.integration.worker.outage import shaky
from tests.integration.worker.workplace import Workplace


@pytest.mark.row("C5")
async def test_a_signal_that_comes_while_a_claim_is_on_its_way_is_not_forgotten(workplace: Workplace) -> None:
    """The claim found nothing, and its answer is still under way when a job comes in."""

    async def works() -> None: ...

    workplace.task(works)
    engine, jobs = shaky(workplace.engine)
    claim = jobs._jobs.claim
    late: list[bytes] = []

    async def slow_answer(*args: Any, **options: Any) -> Any:
        answer = await claim(*args, **options)
        if not late:
            late.append(await workplace.enqueue("works"))
            workplace.worker._exchange.look()
        return answer

    jobs.claim = slow_answer  # type: ignore[method-assign]
    await workplace.start(engine=engine, look_s=3_600)
    await workplace.settled()
    assert await workplace.states(late) == [JobState.COMPLETED]
