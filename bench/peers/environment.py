"""An environment for each peer, made on demand and kept in the user's cache."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import rmtree, which

FINISHED = ".finished"
"""A file that lists what was installed: an environment is made again when that changes."""


class PeerMissing(Exception):
    """The peer cannot be had here; its rows are left out, and the report says so."""


def python_with(*requirements: str) -> Path:
    """The Python of a virtual environment with these alone."""
    name = f"{_plain(requirements[0])}-py{sys.version_info[0]}{sys.version_info[1]}"
    return _made(name, requirements, _python_commands) / "bin" / "python"


def node_with(*packages: str) -> Path:
    """A folder from which Node finds these packages."""
    if which("node") is None or which("npm") is None:
        raise PeerMissing(f"{packages[0]} needs Node.js: install node and npm")
    return _made(_plain(packages[0]), packages, _node_commands)


def _made(
    name: str, wanted: Sequence[str], commands: Callable[[Path, Sequence[str]], list[list[str]]]
) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tidemill-bench")
    folder = cache / name
    finished, listed = folder / FINISHED, "\n".join(wanted)
    if not finished.exists() or finished.read_text() != listed:
        rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        for command in commands(folder, wanted):
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode:
                last = (run.stderr or run.stdout).strip().splitlines()[-1:]
                raise PeerMissing(f"{name} cannot be installed: {' '.join(last)}")
        finished.write_text(listed)
    return folder


def _python_commands(folder: Path, requirements: Sequence[str]) -> list[list[str]]:
    python = str(folder / "bin" / "python")
    if uv := which("uv"):
        make = [uv, "venv", "--quiet", "--python", sys.executable, str(folder)]
        return [make, [uv, "pip", "install", "--quiet", "--python", python, *requirements]]
    make = [sys.executable, "-m", "venv", str(folder)]
    return [make, [python, "-m", "pip", "install", "--quiet", *requirements]]


def _node_commands(folder: Path, packages: Sequence[str]) -> list[list[str]]:
    return [["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]]


def _plain(requirement: str) -> str:
    """A name for a folder."""
    return re.sub(r"[=@]+", "-", requirement)
