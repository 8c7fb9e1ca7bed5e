"""The ticks of a controller. A new one is written in a file of its own and added here."""

from penstock.controller.promotion import Promotion
from penstock.controller.retention import Retention
from penstock.controller.schedules import ScheduleTick
from penstock.controller.tick import Tick
from penstock.controller.upkeep import Upkeep


def all_ticks() -> list[Tick]:
    """Fresh ones for one candidate: some remember what they have said."""
    return [ScheduleTick(), Promotion(), Retention(), Upkeep()]
