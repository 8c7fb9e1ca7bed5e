"""What was logged about a job, for tests that nothing may have gone wrong in."""

import logging

import pytest


def warnings_about(job: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Warnings and errors that name the job. What else is said may be true of a busy machine: a loop that had
    to wait, a controller whose lease was not renewed in time. No test is decided by that."""
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    return [message for message in said if job in message and not message.startswith("the loop ")]
