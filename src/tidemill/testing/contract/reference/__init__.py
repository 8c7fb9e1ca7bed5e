"""What every engine must do, written as plainly as possible: dictionaries, and no thought for speed.

The reference follows the docstrings of the contract and imports nothing of Tidemill but the model,
so that it shares no mistake with an engine. Where the contract leaves an engine a choice (which of
several jobs a bounded sweep takes, whether a claim clears away an expired job on its way), it does
not predict: it *judges* what the engine did, raises `AssertionError` with the reason if that was not
legal, and adopts it. A claim is always judged.
"""

from tidemill.testing.contract.reference.claims import Claims
from tidemill.testing.contract.reference.compare import View, differences
from tidemill.testing.contract.reference.jobs import Jobs
from tidemill.testing.contract.reference.members import Members
from tidemill.testing.contract.reference.queues import Queues
from tidemill.testing.contract.reference.store import Store

__all__ = ["Reference", "Store", "View", "differences"]


class Reference:
    """One namespace, by the book."""

    def __init__(self) -> None:
        self.store = Store()
        self.jobs = Jobs(self.store)
        self.claims = Claims(self.store)
        self.members = Members(self.store)
        self.queues = Queues(self.store)
