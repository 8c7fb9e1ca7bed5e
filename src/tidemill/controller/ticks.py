"""The ticks of a controller. A new one is written in a file of its own and added here."""

from tidemill.controller.promotion import Promotion
from tidemill.controller.retention import Retention
from tidemill.controller.schedules import ScheduleTick
from tidemill.controller.tick import Tick
from tidemill.controller.upkeep import Upkeep


def all_ticks() -> list[Tick]:
    """Fresh ones for one candidate: some remember what they have said."""
    return [ScheduleTick(), Promotion(), Retention(), Upkeep()]
