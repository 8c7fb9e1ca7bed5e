"""What every engine must do, written as plainly as possible: dictionaries, and no thought for speed.

The reference follows the docstrings of the contract and imports nothing of Tidemill but the model,
so that it shares no mistake with an engine. Where the contract leaves an engine a choice (which of
several jobs a bounded sweep takes, whether a claim clears away an expired job on its way), it does
not predict: it *judges* what the engine did, raises `AssertionError` with the reason if that was not
legal, and adopts it. A claim is always judged.
"""

from tidemill.testing.contract.reference.claims import ReferenceClaims
from tidemill.testing.contract.reference.compare import View, differences
from tidemill.testing.contract.reference.jobs import ReferenceJobs
from tidemill.testing.contract.reference.members import ReferenceMembers
from tidemill.testing.contract.reference.queues import ReferenceQueues
from tidemill.testing.contract.reference.store import ReferenceStore
from tidemill.testing.contract.reference.tasks import ReferenceTasks

__all__ = ["Reference", "ReferenceStore", "View", "differences"]


class Reference:
    """One namespace, by the book."""

    def __init__(self) -> None:
        self.store = ReferenceStore()
        self.jobs = ReferenceJobs(self.store)
        self.claims = ReferenceClaims(self.store)
        self.members = ReferenceMembers(self.store)
        self.queues = ReferenceQueues(self.store)
        self.tasks = ReferenceTasks(self.store)
