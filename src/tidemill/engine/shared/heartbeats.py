"""Reports about worker processes, from heartbeats and retirements, without numbers that no store can take.

A member reads these reports from a table that its worker processes write. A broken worker process may have
written anything there, and its member has to stay alive all the same. So a fence that no engine can have
handed out is neither refused nor sent: its run counts as lost.
"""

from collections.abc import Sequence

from tidemill.engine.shared.checks import EXACT
from tidemill.model.jobs.job import Fence
from tidemill.model.jobs.run import LostRun
from tidemill.model.member import ClaimantHeartbeat


def plausible(claimants: Sequence[ClaimantHeartbeat]) -> tuple[Sequence[ClaimantHeartbeat], list[Fence]]:
    """The reports with possible numbers only, and the fences that are lost."""
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


def plausible_lost_runs(lost_runs: Sequence[LostRun]) -> Sequence[LostRun]:
    """Without those whose fence no run can have."""
    return [run for run in lost_runs if 0 <= run.fence < EXACT]


def _is_plausible(claimant: ClaimantHeartbeat) -> bool:
    return 0 <= claimant.answered_through < EXACT and all(0 <= fence < EXACT for fence in claimant.held)
