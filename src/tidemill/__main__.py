"""`python -m tidemill` is the `tidemill` command.

A supervisor starts its worker processes by it, and a worker process its runner processes. Those do not import
click: it would take a tenth of the processor time of their start.
"""

import gc
import os
import sys
from importlib import import_module

PROGRAMS = {"_child": "tidemill.worker.process.main", "_runner": "tidemill.worker.runner.main"}


def main() -> None:
    """Run the program, or the command."""
    gc.disable()  # what is imported stays: to look for garbage in it is an eighth of the time of the start
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name in PROGRAMS and _started_by_tidemill():
        _run_program(PROGRAMS[name])
    else:  # a person who tries `_child` is told in one line that it is not for people
        from tidemill.cli import main as command

        _leave_imports_alone()
        command(prog_name="tidemill")


def _started_by_tidemill() -> bool:
    from tidemill.worker.member.spawn import DESCRIPTORS

    return DESCRIPTORS in os.environ


def _run_program(module: str) -> None:
    from tidemill.app.loading import load_in_worker

    program = import_module(module)
    _leave_imports_alone()
    try:
        program.main(load_in_worker)
    except EOFError as gone:
        sys.exit(f"tidemill: {gone}")


def _leave_imports_alone() -> None:
    """Look for garbage from now on, but never among what was imported: at the end of a process that would
    take as long as at its start."""
    gc.freeze()
    gc.enable()


if __name__ == "__main__":
    main()
