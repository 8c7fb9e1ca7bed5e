"""A virtual environment for each peer, made on demand and kept in the user's cache."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import rmtree, which

FINISHED = ".finished"


class PeerMissing(Exception):
    """The peer cannot be had here; its rows are left out, and the report says so."""


def python_with(package: str, version: str) -> Path:
    """The Python of an environment with that package alone."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "penstock-bench")
    folder = cache / f"{package}-{version}-py{sys.version_info[0]}{sys.version_info[1]}"
    python = folder / "bin" / "python"
    if not (folder / FINISHED).exists():
        rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        for command in _commands(folder, python, f"{package}=={version}"):
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode:
                last = (run.stderr or run.stdout).strip().splitlines()[-1:]
                raise PeerMissing(f"{package} {version} cannot be installed: {' '.join(last)}")
        (folder / FINISHED).touch()
    return python


def _commands(folder: Path, python: Path, requirement: str) -> list[list[str]]:
    if uv := which("uv"):
        make = [uv, "venv", "--quiet", "--python", sys.executable, str(folder)]
        return [make, [uv, "pip", "install", "--quiet", "--python", str(python), requirement]]
    make = [sys.executable, "-m", "venv", str(folder)]
    return [make, [str(python), "-m", "pip", "install", "--quiet", requirement]]
