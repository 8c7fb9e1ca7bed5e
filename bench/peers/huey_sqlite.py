"""Huey on SQLite: `python huey_sqlite.py enqueue|drain FOLDER JOBS full|off`, in an environment with huey.

`SqliteHuey` as https://huey.readthedocs.io/en/latest/api.html#SqliteHuey documents it, with its defaults
(`full`): WAL, and SQLite's own default of a sync with every commit, which is the durability of ours. `off` is
its `fsync=False`: faster, and a power cut may damage the file.

The consumer as https://huey.readthedocs.io/en/latest/consumer.html documents it: worker threads, one by
default, "but some applications may want to increase this number". For jobs that do nothing 1, 2 and 4 threads
are a tie (1,965, 1,713 and 1,783 jobs/s, medians of six interleaved turns), so it is the default.

Timed like ours: the jobs are there before the consumer starts; from the first start of a task to the last
end, which leaves the last acknowledgement out. A task that returns None stores no result. Prints JSON.
"""

import json
import logging
import sys
import threading
import time
from pathlib import Path

from huey import SqliteHuey  # type: ignore[import-not-found,unused-ignore]

WORKERS = 1
PAYLOAD = "x" * 202
PATIENCE_S = 300.0


class Count:
    """How many tasks have run, and when the first began and the last ended."""

    def __init__(self) -> None:
        self.jobs = 0
        self.wanted = 0
        self.began = self.ended = 0.0
        self.done = threading.Event()


def main(errand: str, folder: Path, jobs: int, durability: str) -> dict[str, float]:
    file = str(folder / f"huey-{durability}.db")
    huey = SqliteHuey("bench", filename=file, **({} if durability == "full" else {"fsync": False}))
    count = Count()
    lock = threading.Lock()

    @huey.task()  # type: ignore[untyped-decorator,unused-ignore]
    def noop(payload: str) -> None:
        now = time.perf_counter()
        with lock:
            count.began = count.began or now
            count.jobs += 1
            if count.jobs == count.wanted:
                count.ended = time.perf_counter()
                count.done.set()

    if errand == "enqueue":
        began, cpu = time.perf_counter(), time.process_time()
        for _ in range(jobs):
            noop(PAYLOAD)
        took, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    else:
        for _ in range(jobs):
            noop(PAYLOAD)
        count.wanted = jobs
        consumer = huey.create_consumer(workers=WORKERS, worker_type="thread", periodic=False)
        cpu = time.process_time()
        consumer.start()
        if not count.done.wait(PATIENCE_S):
            raise TimeoutError(f"{count.jobs} of {jobs} jobs ran")
        took, cpu_s = count.ended - count.began, time.process_time() - cpu
        consumer.stop(graceful=True)
    huey.storage.flush_all()
    return {"jobs_s": jobs / took, "cpu_us": 1e6 * cpu_s / jobs}


if __name__ == "__main__":
    logging.disable(logging.INFO)
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])))
