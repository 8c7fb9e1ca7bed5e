"""Two processes on one file: nothing is lost, nothing is done twice, both get on; they wake each other."""

import asyncio
import json
import os
import signal
import time
from pathlib import Path

from tests.integration.sqlite.children import child
from tests.integration.sqlite.opened import connect
from tests.integration.sqlite.plain_file import file_url, is_sound, plain
from tests.integration.sqlite.signal_folder import signal_folder
from tidemill.engine import connections
from tidemill.engine.shared.calls.inbox import POLL_S
from tidemill.model.event import ANY_TOPIC, ready_topic
from tidemill.testing.contract.fixtures import Clock, a_job, created

JOBS = 1_000
"""Of each process."""

WORKS = """
import asyncio, json, sys
from tidemill.engine.registry import connect
from tidemill.testing.contract.fixtures import Claimant, Clock, a_job, completed, created

async def main(url, name, count):
    engine = await connect(url)
    clock = Clock(await engine.now())
    claimant = Claimant(engine, clock, name=name)
    await claimant.heartbeat()
    print("open")
    input()

    async def produce():
        for _ in range(count // 20):
            jobs = [a_job(task=name) for _ in range(20)]
            assert created(await engine.jobs.enqueue(jobs, now=clock.now)) == [True] * 20

    async def consume():
        done, number, settlements = [], 0, []
        while True:
            number += 1
            settled = await engine.jobs.settle(
                settlements, claim=claimant.request(most=7, number=number), now=clock.now)
            assert settled.answers == ["applied"] * len(settlements), settled.answers
            done += [item.id.hex() for item in settlements]
            settlements = [completed(job) for job in settled.claim.jobs]
            if not settlements and producing.done():
                (counts,) = await engine.inspect.counts(now=clock.now)
                if counts.ready == 0 and counts.completed >= 2 * count:
                    return done
                await asyncio.sleep(0.005)

    producing = asyncio.ensure_future(produce())
    done = await asyncio.wait_for(consume(), 100)
    await producing
    await engine.close()
    print(json.dumps(done))

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


def test_nothing_is_lost_nothing_twice_and_both_get_a_share(path: Path) -> None:
    url = file_url(path, durability="normal")
    with child(WORKS, url, "one", JOBS) as one, child(WORKS, url, "other", JOBS) as other:
        assert [one.read(), other.read()] == ["open", "open"]
        one.go_on()
        other.go_on()
        done = [json.loads(each.read()) for each in (one, other)]
        assert [one.end(), other.end()] == [0, 0]
    taken = done[0] + done[1]
    assert len(taken) == len(set(taken)) == 2 * JOBS
    assert min(map(len, done)) > 0, "how fair it is depends on the machine: ./dev bench measures the shares"
    with plain(path) as db:
        is_sound(db)
        assert db.execute("SELECT state, attempts, count(*) FROM job_now GROUP BY 1, 2").fetchall() == [
            (4, 1, 2 * JOBS)
        ]
        assert {job_id.hex() for (job_id,) in db.execute("SELECT id FROM job")} == set(taken)


ENQUEUES_ON_REQUEST = """
import asyncio, sys
from tidemill.engine.registry import connect
from tidemill.testing.contract.fixtures import a_job

async def main():
    engine = await connect(sys.argv[1])
    print("open")
    while input():
        await engine.jobs.enqueue([a_job()])
        print("enqueued")

asyncio.run(main())
"""


async def test_a_wake_up_crosses_processes(path: Path) -> None:
    """By datagram: before the next check, most of the time long before."""
    engine = await connect(file_url(path))
    with child(ENQUEUES_ON_REQUEST, file_url(path)) as process:
        assert process.read() == "open"
        waits = []
        for _ in range(10):
            subscription = await engine.signals.subscribe(ready_topic("q"))
            waiting = asyncio.ensure_future(subscription.next(30))
            process.go_on()
            assert await asyncio.to_thread(process.read) == "enqueued"
            began = time.monotonic()
            received = await waiting
            waits.append(time.monotonic() - began)
            assert received is not None
            if received.topic == ANY_TOPIC:  # on a busy machine the check may come first
                waits[-1] = POLL_S
            else:
                assert received.topic == ready_topic("q")
            await subscription.close()
        assert min(waits) < POLL_S / 4
    await engine.close()


async def test_a_commit_without_a_signal_is_noticed(path: Path, clock: Clock) -> None:
    """A user's own transaction sends none."""
    engine = await connect(file_url(path))
    assert engine.transactions is not None
    await engine.jobs.enqueue([a_job()], now=clock.now)
    subscription = await engine.signals.subscribe("other")
    waiting = asyncio.ensure_future(subscription.next(30))
    with plain(path) as db:
        db.execute("BEGIN")
        connections.play(db, engine.transactions.enqueue([a_job()]), twin="")
        assert not waiting.done()
        db.execute("COMMIT")
    received = await waiting
    assert received is not None
    assert received.topic == ANY_TOPIC
    await subscription.close()
    await engine.close()


async def test_silence_is_no_signal(path: Path) -> None:
    engine = await connect(file_url(path))
    subscription = await engine.signals.subscribe(ready_topic("q"))
    assert await subscription.next(2.5 * POLL_S) is None
    await subscription.close()
    await engine.close()


SUBSCRIBES = """
import asyncio, sys
from tidemill.engine.registry import connect

async def main():
    engine = await connect(sys.argv[1])
    await engine.signals.subscribe("ready:q")
    print("listening")
    input()

asyncio.run(main())
"""


async def test_the_socket_of_a_killed_listener_is_removed(path: Path, clock: Clock) -> None:
    engine = await connect(file_url(path))
    with child(SUBSCRIBES, file_url(path)) as process:
        assert process.read() == "listening"
        assert len(os.listdir(signal_folder(path))) == 1
        process.kill()
    await engine.signals.publish(ready_topic("q"))
    assert os.listdir(signal_folder(path)) == []
    await engine.close()


async def test_a_listener_that_does_not_read_holds_nobody_up(path: Path, clock: Clock) -> None:
    engine = await connect(file_url(path))
    with child(SUBSCRIBES, file_url(path)) as process:
        assert process.read() == "listening"
        os.kill(process.pid, signal.SIGSTOP)  # its buffer fills up
        began = time.monotonic()
        for number in range(5_000):
            await engine.signals.publish(ready_topic("q"), str(number))
        assert time.monotonic() - began < 30
        assert created(await engine.jobs.enqueue([a_job()], now=clock.now)) == [True]
    await engine.close()
