"""Where a demo plays: in a temporary file, or in a temporary namespace on the server that the settings name.

Either is gone afterwards.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import click

from tidemill.engine.registry import DEFAULT_NAMESPACE, connect, erase
from tidemill.model.errors import TidemillError
from tidemill.task.settings import Settings


class Venue(NamedTuple):
    """A store that nobody else uses."""

    url: str
    namespace: str
    shown: str
    """For people; empty where it is of no interest."""


@contextmanager
def venue(folder: str) -> Iterator[Venue]:
    """On the server of the settings, if they name one, else in this folder."""
    settings = Settings.load()
    if urlsplit(settings.url).scheme == "sqlite":
        yield Venue(f"sqlite:///{Path(folder, 'demo.db')}", DEFAULT_NAMESPACE, "")
        return
    namespace = f"tidemill_demo_{os.urandom(6).hex()}"
    asyncio.run(_open(settings.url, namespace))
    try:
        yield Venue(settings.url, namespace, f"{settings.shown('url')}, in the namespace {namespace}")
    finally:
        _tidy_up(settings.url, namespace)


async def _open(url: str, namespace: str) -> None:
    """Make it now: what is wrong with the URL is said before anything starts."""
    await (await connect(url, namespace=namespace)).close()


def _tidy_up(url: str, namespace: str) -> None:
    try:
        asyncio.run(erase(url, namespace=namespace))
    except TidemillError as error:
        click.echo(f"tidemill: the namespace {namespace} of this demo is still there: {error}", err=True)
