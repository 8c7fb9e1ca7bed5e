"""What was logged, for tests that nothing may have gone wrong in."""

import logging

import pytest


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """All warnings and errors, but for those of a loop that had to wait: a busy machine is no fault."""
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    return [message for message in said if not message.startswith("the loop ")]
