"""Tasks that enqueue: it goes to where the worker works, from the loop, from threads and from processes."""

import asyncio
import os
import sys
from pathlib import Path

import msgspec

from tests.integration.supervisor.groups import finished
from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id, parse_id
from tidemill.model.jobs.job import JobState, NewJob

SHOP = """
from tidemill import Tidemill

app = Tidemill("sqlite:///elsewhere.db")


@app.task(name="leaf")
async def leaf(came_from: str) -> str:
    return came_from


@app.task(name="loop")
async def on_the_loop() -> str:
    return (await leaf.aenqueue("loop")).id


@app.task(name="thread")
def in_a_thread() -> str:
    return leaf.enqueue("thread").id


@app.task(name="process", runs_in="process")
def in_a_process() -> str:
    return leaf.enqueue("process").id
"""


async def test_what_tasks_enqueue_goes_where_the_worker_works(
    engine: Engine, engine_url: str, tmp_path: Path
) -> None:
    (tmp_path / "placed.py").write_text(SHOP)
    command = [sys.executable, "-m", "tidemill", "worker", "placed:app", "--url", engine_url]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMILL_")}
    parents = [NewJob(id=new_id(), task=task, queue="default") for task in ("loop", "thread", "process")]
    await engine.jobs.enqueue(parents)
    worker = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, env=environment)
    try:
        ended = await finished(engine, [job.id for job in parents])
        assert {job.state for job in ended} == {JobState.COMPLETED}
        children = [parse_id(msgspec.json.decode(job.result or b"", type=str)) for job in ended]
        found = await finished(engine, children)
        assert [job.result for job in found] == [b'"loop"', b'"thread"', b'"process"']
    finally:
        worker.terminate()
        await worker.wait()
    assert not (tmp_path / "elsewhere.db").exists()
