"""Somebody who listens to events: a process of its own that reads them all and says how many came."""

import sys
import threading

import msgspec

from tidemill import Gap, Tidemill


class Heard(msgspec.Struct, kw_only=True):
    """What came so far."""

    events: int
    missed: int


def main() -> None:
    """Say "listening"; then, for every line that comes, what was heard until then."""
    app = Tidemill(sys.argv[1])
    with app.events() as events:
        print("listening", flush=True)
        heard = Heard(events=0, missed=0)

        def read() -> None:
            for event in events:
                if isinstance(event, Gap):
                    heard.missed += event.missed or 1
                else:
                    heard.events += 1

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        for _ in sys.stdin:
            print(msgspec.json.encode(heard).decode(), flush=True)


if __name__ == "__main__":
    main()
