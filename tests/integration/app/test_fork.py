"""gunicorn-style preload: the app is used before the fork, then in parent and child alike."""

import asyncio
import os
from pathlib import Path

import msgspec
import pytest

from penstock import Penstock
from tests.integration.app.claimer import taken


@pytest.mark.parametrize("engine_mode", ["sqlite-file"], indirect=True)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_parent_and_children_enqueue_after_a_fork(app: Penstock, tmp_path: Path) -> None:
    task = app.task(name="t")(lambda n: n)
    task.enqueue(0)
    children = []
    for number in (1, 2, 3):
        pid = os.fork()
        if pid == 0:  # the child must not run anything of the test session
            code = 1
            try:
                job = task.enqueue(number)
                code = 0 if job.refresh().body == b"[[%d],{}]" % number else 2
            finally:
                os._exit(code)
        children.append(pid)
    task.enqueue(4)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0, 0, 0]
    numbers = [msgspec.json.decode(job.body)[0][0] for job in asyncio.run(taken(app))]
    assert sorted(numbers) == [0, 1, 2, 3, 4]
