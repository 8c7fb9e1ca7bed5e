"""The limited queues of a run: what its code declares of them.

One, `VALVE`, is declared otherwise by each release, and an operator overrides, resets, pauses and resumes it
during the run. The options of the others never change.
"""

from typing import Any

from tests.chaos.deploy import release_here
from tidemill import Limit
from tidemill.model.queues.queue import QueueOptions

APP = "tests.chaos.app"

NARROW, KEYED, FAIR, VALVE = "narrow", "keyed", "fair", "valve"
NIP = f"{APP}.nip"

DECLARED: dict[str, dict[str, Any]] = {
    NARROW: {"concurrency": 3, "per_task": {NIP: Limit(concurrency=2)}},
    KEYED: {
        "per_key": Limit(concurrency=2),
        "limits": {"key0": Limit(concurrency=1), "key1": Limit(concurrency=4)},
    },
    FAIR: {"concurrency": 3, "fair_by": "key", "weights": {"gold": 3}},
}
OPTIONS = {name: QueueOptions(**said) for name, said in DECLARED.items()}

VALVE_BY_RELEASE = (3, 1, 2)
"""Its concurrency, as each release declares it."""
OVERRIDES = (1, 4, 2)
"""What an operator sets, one after the other."""
CROWD = "crowd"
"""The key that floods the fair queue. It comes before the others in the order of turns."""
TENANTS = ("gold", "silver", "tin")


def valve_here() -> int:
    """The concurrency of `VALVE` in the code of this process."""
    return VALVE_BY_RELEASE[release_here() % len(VALVE_BY_RELEASE)]
