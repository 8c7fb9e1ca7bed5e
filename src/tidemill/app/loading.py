"""From `module:attribute` to an app."""

import os
import sys
from importlib import import_module

from tidemill.app.access.in_worker import AppInWorker
from tidemill.app.tidemill import Tidemill
from tidemill.model.errors import BadInput
from tidemill.model.names import nearest


def load_in_worker(spec: str) -> AppInWorker:
    """The same app, with what a worker process may do with it."""
    return AppInWorker(load_app(spec))


def load_app(spec: str) -> Tidemill:
    """Import the module and take the app from it. The working folder is importable, as with `python -m`."""
    module_name, _, path = spec.partition(":")
    if not module_name or not path:
        raise BadInput(f"{spec!r} does not name an app: write module:attribute, such as shop.jobs:app")
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there; something that it imports is not
        raise BadInput(f"there is no module {module_name!r} in {folder} or on the Python path") from None
    for name in path.split("."):
        if not hasattr(found, name):
            apps = [key for key, value in vars(found).items() if isinstance(value, Tidemill)]
            hint = nearest(name, apps) or ": name the variable that holds Tidemill(...)"
            raise BadInput(f"{module_name!r} has no {path!r}{hint}")
        found = getattr(found, name)
    if not isinstance(found, Tidemill):
        raise BadInput(f"{spec} is a {type(found).__name__}, not a Tidemill app")
    return found
