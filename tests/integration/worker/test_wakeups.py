"""What wakes a worker."""

import pytest

from tests.integration.worker.workplace import Workplace
from tidemill.model.jobs.run import Claim


@pytest.mark.every_engine
@pytest.mark.row("C5")
async def test_a_signal_that_comes_while_a_claim_is_on_its_way_is_not_forgotten(workplace: Workplace) -> None:
    """The claim found nothing, and its answer is still under way when something becomes claimable."""

    async def works() -> None: ...

    workplace.task(works)
    worker = await workplace.start(poll_s=3_600)
    await workplace.idle()
    claims = worker._claims
    worker._unsettled.claim_soon()
    request = claims.request(anyway=False)
    assert request is not None
    worker._unsettled.claim_soon()
    claims.answered(request, Claim([]), took_s=0.001)
    assert claims.patience() == 0
    request = claims.request(anyway=False)
    assert request is not None
    claims.answered(request, Claim([]), took_s=0.001)
    assert (claims.patience() or 0) > 60
