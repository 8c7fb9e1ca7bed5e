"""A task that blocks the worker's loop."""

import logging
import threading

import pytest

from tests.integration.worker.workplace import Workplace
from tidemill.model.ids import show_id


@pytest.mark.parametrize("engine_mode", ["sqlite-memory"], indirect=True)
async def test_a_task_that_blocks_the_loop_is_logged_with_its_job_and_its_line(
    workplace: Workplace, caplog: pytest.LogCaptureFixture
) -> None:
    said = threading.Event()

    class Listens(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "the loop has not answered" in record.getMessage():
                said.set()

    async def blocks() -> None:
        assert said.wait(30)

    workplace.task(blocks)
    await workplace.start()
    listens = Listens()
    logging.getLogger("tidemill.worker").addHandler(listens)
    try:
        job_id = await workplace.enqueue("blocks")
        await workplace.settled(1)
    finally:
        logging.getLogger("tidemill.worker").removeHandler(listens)
    (line,) = [text for text in caplog.messages if "the loop has not answered" in text]
    assert f"blocked by blocks {show_id(job_id)} (attempt 1/" in line
    assert "in blocks" in line
