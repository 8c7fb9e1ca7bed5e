"""An engine does not cross a fork: the child is told so, and the parent goes on."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.sqlite.children import ROOT
from tests.integration.sqlite.plain_file import file_url

FORKS = """
import asyncio, os, sys
from tidemill.engine.registry import connect
from tidemill.model.errors import SingleProcess
from tidemill.model.event import ready_topic
from tidemill.testing.contract.fixtures import START, a_job, created

async def main(url):
    engine = await connect(url)
    subscription = await engine.signals.subscribe(ready_topic("q"))
    await engine.jobs.enqueue([a_job()], now=START)
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        os._exit(await in_child(engine, url, into))
    os.close(into)
    with open(out) as pipe:
        said = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0, said
    assert created(await engine.jobs.enqueue([a_job()], now=START)) == [True]
    assert (await engine.inspect.counts(now=START))[0].ready == (2 if engine.single_process else 3)
    assert (await subscription.next(10)).topic == ready_topic("q")
    await engine.close()
    print(said)

async def in_child(engine, url, into):
    for attempt in (
        lambda: engine.jobs.enqueue([a_job()], now=START),
        lambda: engine.inspect.counts(now=START),
        lambda: engine.signals.publish("x"),
        lambda: engine.signals.subscribe("x"),
        lambda: engine.now(),
    ):
        try:
            await attempt()
        except SingleProcess as error:
            os.write(into, f"{error}\\n".encode())
        else:
            return 1
    if not engine.single_process:
        asyncio.events._set_running_loop(None)
        return asyncio.new_event_loop().run_until_complete(opened_again(url))
    return 0

async def opened_again(url):
    engine = await connect(url)
    assert created(await engine.jobs.enqueue([a_job()], now=START)) == [True]
    await engine.close()
    return 0

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize("mode", ["a file", "in memory", "in memory, with a name"])
def test_the_child_is_refused_and_the_parent_goes_on(mode: str, path: Path) -> None:
    urls = {"a file": file_url(path), "in memory": "sqlite://", "in memory, with a name": "sqlite://?name=x"}
    command = (sys.executable, "-c", FORKS, urls[mode])
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.split("\n")[:5]
    assert (
        len([line for line in lines if "opened before this process was forked; open it again here" in line])
        == 5
    )
    assert all(("cannot be shared" in line) is (mode != "a file") for line in lines)
