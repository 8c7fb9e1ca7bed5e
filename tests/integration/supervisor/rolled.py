"""The app of these tests in its next release: it has one task more."""

from tests.integration.supervisor.app import app

__all__ = ["app"]

ADDED = "tests.integration.supervisor.app.added"


@app.task(name=ADDED)
async def added(number: int) -> int:
    """What the release before does not have."""
    return number
