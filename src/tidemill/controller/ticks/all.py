"""The ticks of a controller. A new one is written in a file of its own and added here."""

from tidemill.controller.ticks.declarations import DeclarationTick
from tidemill.controller.ticks.promotion import Promotion
from tidemill.controller.ticks.retention import Retention
from tidemill.controller.ticks.schedules import ScheduleTick
from tidemill.controller.ticks.statistics import StatisticsTick
from tidemill.controller.ticks.tick import Tick
from tidemill.controller.ticks.upkeep import Upkeep


def all_ticks() -> list[Tick]:
    """Fresh ones for one candidate: some remember what they have said."""
    return [ScheduleTick(), DeclarationTick(), Promotion(), Retention(), StatisticsTick(), Upkeep()]
