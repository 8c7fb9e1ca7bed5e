"""Sends signals after a commit: the first of a topic at once, the others of a burst as one."""

import time
from collections.abc import Iterable, Sequence
from typing import Protocol

from tidemill.model.event import Signal

MERGE_S = 0.002
"""A topic is signalled at once, and then at most once in this time; the last one is never dropped."""


class PubSub(Protocol):
    """Sends signals to those who listen."""

    def has_listeners(self) -> bool:
        """Whether there are any listeners."""
        ...

    def send(self, signals: Iterable[Signal]) -> None: ...


class Outbox:
    """What one writer has to send. For one thread at a time."""

    def __init__(self, pubsub: PubSub) -> None:
        self._pubsub = pubsub
        self._sent: dict[str, float] = {}
        self._held_back: dict[str, Signal] = {}

    @property
    def held_back(self) -> bool:
        """Something waits for its time: `send` again after `MERGE_S`."""
        return bool(self._held_back)

    def send(self, signals: Sequence[Signal]) -> None:
        """Send these, and what was held back, if it is time."""
        if not signals and not self._held_back:
            return
        if not self._pubsub.has_listeners():  # a new listener reads the state first
            self._held_back.clear()
            return
        now, due = time.monotonic(), []
        for signal in [*self._held_back.values(), *signals]:
            name = f"{signal.topic} {signal.text}"
            if now - self._sent.get(name, 0) >= MERGE_S:
                self._sent[name] = now
                self._held_back.pop(name, None)
                due.append(signal)
            else:
                self._held_back[name] = signal
        if len(self._sent) > 1_000:
            self._sent = {name: at for name, at in self._sent.items() if now - at < MERGE_S}
        if due:
            self._pubsub.send(due)

    def close(self) -> None:
        """Send what was held back, for there will be no later."""
        self._pubsub.send(list(self._held_back.values()))
        self._held_back.clear()
