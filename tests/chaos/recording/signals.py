"""The `signals` facet, which may drop and double."""

from typing import Any

from tests.chaos.weather import Weather
from tidemill.engine.protocol import Engine
from tidemill.model.event import Signal


class ShakySignals:
    """The `signals` facet, which may drop and double."""

    def __init__(self, engine: Engine, weather: Weather) -> None:
        self._signals = engine.signals
        self._weather = weather

    def __getattr__(self, name: str) -> Any:
        return getattr(self._signals, name)

    async def subscribe(self, *topics: str) -> Any:
        return _ShakySubscription(await self._signals.subscribe(*topics), self._weather)


class _ShakySubscription:
    def __init__(self, subscription: Any, weather: Weather) -> None:
        self._subscription = subscription
        self._weather = weather
        self._again: Signal | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._subscription, name)

    async def next(self, timeout: float | None = None) -> Signal | None:
        if self._again is not None:
            signal, self._again = self._again, None
            return signal
        while (received := await self._subscription.next(timeout)) is not None:
            if self._weather.drops_signals():
                continue
            if self._weather.doubles_signals():
                self._again = received
            return received  # type: ignore[no-any-return]
        return None
