"""What is said of worker processes, by a heartbeat and by their retirement, made fit for every store.

It is read from a table that those processes write. One that has gone mad may have written anything there,
and its member must go on living all the same: so a fence that cannot have been given out is not refused, and
not sent, but lost.
"""

from collections.abc import Sequence

from tidemill.engine.shared.checks import EXACT
from tidemill.model.jobs.job import Fence
from tidemill.model.jobs.run import LostRun
from tidemill.model.member import ClaimantHeartbeat


def plausible(claimants: Sequence[ClaimantHeartbeat]) -> tuple[Sequence[ClaimantHeartbeat], list[Fence]]:
    """The same with the numbers that there can be, and the fences that are lost."""
    if all(map(_is_plausible, claimants)):
        return claimants, []
    lost = [fence for each in claimants for fence in each.held if not 0 <= fence < EXACT]
    return [
        ClaimantHeartbeat(
            claimant=each.claimant,
            answered_through=min(max(0, each.answered_through), EXACT - 1),
            held=tuple(fence for fence in each.held if 0 <= fence < EXACT),
        )
        for each in claimants
    ], lost


def plausible_losses(losses: Sequence[LostRun]) -> Sequence[LostRun]:
    """Those that can be about a run."""
    return [loss for loss in losses if 0 <= loss.fence < EXACT]


def _is_plausible(claimant: ClaimantHeartbeat) -> bool:
    return 0 <= claimant.answered_through < EXACT and all(0 <= fence < EXACT for fence in claimant.held)
