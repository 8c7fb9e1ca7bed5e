"""An environment for each peer, made on demand and kept in the user's cache."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import rmtree, which

FINISHED = ".finished"


class PeerMissing(Exception):
    """The peer cannot be had here; its rows are left out, and the report says so."""


def python_with(*requirements: str) -> Path:
    """The Python of a virtual environment with these alone."""
    name = f"{_plain(requirements[0])}-py{sys.version_info[0]}{sys.version_info[1]}"
    return _made(name, lambda folder: _python_commands(folder, requirements)) / "bin" / "python"


def node_with(package: str) -> Path:
    """A folder from which Node finds this package."""
    if which("node") is None or which("npm") is None:
        raise PeerMissing(f"{package} needs Node.js: install node and npm")
    return _made(_plain(package), lambda folder: _node_commands(folder, package))


def _made(name: str, commands: Callable[[Path], list[list[str]]]) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "penstock-bench")
    folder = cache / name
    if not (folder / FINISHED).exists():
        rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        for command in commands(folder):
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode:
                last = (run.stderr or run.stdout).strip().splitlines()[-1:]
                raise PeerMissing(f"{name} cannot be installed: {' '.join(last)}")
        (folder / FINISHED).touch()
    return folder


def _python_commands(folder: Path, requirements: Sequence[str]) -> list[list[str]]:
    python = str(folder / "bin" / "python")
    if uv := which("uv"):
        make = [uv, "venv", "--quiet", "--python", sys.executable, str(folder)]
        return [make, [uv, "pip", "install", "--quiet", "--python", python, *requirements]]
    make = [sys.executable, "-m", "venv", str(folder)]
    return [make, [python, "-m", "pip", "install", "--quiet", *requirements]]


def _node_commands(folder: Path, package: str) -> list[list[str]]:
    return [["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), package]]


def _plain(requirement: str) -> str:
    """A name for a folder."""
    return re.sub(r"[=@]+", "-", requirement)
