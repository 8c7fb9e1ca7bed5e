"""Which engine a command talks to, and talking to it.

    --url  >  -A APP's own  >  a URL that the settings really set  >  the APP of the settings  >  the default

The last but one keeps `tidemill jobs ls` in a project from reading an empty default file while the
project's application says where its jobs are.
"""

import asyncio
import functools
import os
import traceback
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import click

from tidemill.cli.program import debug_option
from tidemill.model.errors import BadInput, TidemillError
from tidemill.task.settings import Settings
from tidemill.task.settings.setting import without_password

if TYPE_CHECKING:
    from tidemill.app.tidemill import Tidemill
    from tidemill.engine.protocol import Engine

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Where(NamedTuple):
    """The URL and namespace of one invocation, and the settings around them."""

    url: str
    namespace: str
    app: str | None
    """The application that was named, or that the settings name."""
    settings: Settings
    loaded: "Tidemill | None" = None
    """That application, if its code says the URL."""

    def __repr__(self) -> str:
        return f"Where({self.shown!r}, {self.namespace!r}, {self.app!r})"

    @property
    def shown(self) -> str:
        """The URL without a password."""
        return without_password(self.url)

    def application(self) -> "Tidemill":
        """An application on this URL: the one that was loaded, or one without code."""
        if self.loaded is not None and self.loaded.namespace == self.namespace:
            return self.loaded
        from tidemill.app.tidemill import Tidemill

        return Tidemill(settings=self.settings.but(url=self.url, namespace=self.namespace))


def where_options(command: F) -> F:
    """`--url`, `--namespace`, `-A` and `--debug`; the command gets a `where`."""

    @functools.wraps(command)
    def run(*args: Any, url: str | None, namespace: str | None, app: str | None, **options: Any) -> Any:
        return command(*args, where=find(url=url, namespace=namespace, app=app), **options)

    for option in (
        debug_option,
        click.option("--namespace", metavar="NAME", help="The namespace there. [setting: namespace]"),
        click.option("--url", metavar="URL", help="The engine. [setting: url]"),
        click.option(
            "-A",
            "--app",
            metavar="APP",
            help="Take URL and namespace from this application, module:attribute.",
        ),
    ):
        run = option(run)
    return run  # type: ignore[return-value]


def find(*, url: str | None = None, namespace: str | None = None, app: str | None = None) -> Where:
    """The URL and namespace that options and settings name together."""
    settings = Settings.load(given_as="option --{name}", url=url, namespace=namespace, app=app)
    named = settings.source_of("app") != "default"
    from_app = url is None and (app is not None or (named and settings.source_of("url") == "default"))
    if not from_app or settings.app is None:
        return Where(settings.url, settings.namespace, settings.app, settings)
    found = load(settings.app)
    return Where(found.url, namespace or found.namespace, settings.app, found.settings, found)


def load(spec: str) -> "Tidemill":
    """The application. What its own code raises on the way is shown as such, not as a bug of ours."""
    from tidemill.app.loading import load_app

    try:
        return load_app(spec)
    except TidemillError:
        raise
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        raise BadInput(
            f"{spec} cannot be imported: {type(error).__name__}: {error} ({at.filename}, line {at.lineno})"
        ) from error


def with_engine(where: Where, work: Callable[["Engine"], Awaitable[T]], *, create: bool = False) -> T:
    """Open the engine, do the work, close it. Only with `create` is anything made or migrated there."""
    if not create:
        _check_there(where)
    return asyncio.run(_work(where, work, create))


async def _work(where: Where, work: Callable[["Engine"], Awaitable[T]], create: bool) -> T:
    from tidemill.engine.events.emitting import EmittingEngine
    from tidemill.engine.registry import connect

    engine = EmittingEngine(await connect(where.url, namespace=where.namespace, migrate=create))
    try:
        return await work(engine)
    finally:
        await engine.close()


def _check_there(where: Where) -> None:
    """To open a SQLite file that does not exist would make an empty one."""
    if urlsplit(where.url).scheme != "sqlite":
        return
    from tidemill.engines.sqlite.url import parse_url

    path = parse_url(where.url).path
    if path is None:
        raise BadInput("an in-memory engine lives in one process: give the URL of a file, or of a server")
    if not os.path.exists(path):
        raise BadInput(
            f"there is no {path} yet: the first enqueue or worker makes it, or give another --url or -A APP"
        )


def operator() -> str:
    """Who acts, for the audit."""
    from tidemill.app.operating.who import who_acts

    return who_acts("cli")
