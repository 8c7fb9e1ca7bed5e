"""A small disk that can be filled: a file system in memory, where we may mount one."""

import errno
import os
import subprocess
from pathlib import Path

from tests.leash import label

SIZE = "768m"
TOOL_S = 60
CHUNK = 1 << 20


class Disk:
    """A folder; with `small` it is a disk of its own."""

    def __init__(self, folder: Path, *, small: bool) -> None:
        self.folder = folder
        self.small = small
        self._ballast = folder / "ballast"

    @classmethod
    def mounted(cls, folder: Path) -> "Disk":
        folder.mkdir(mode=0o755)
        if os.geteuid() != 0:
            return cls(folder, small=False)
        options = f"size={SIZE},mode=0755"
        command = ("mount", "-t", "tmpfs", "-o", options, label(), str(folder))
        subprocess.run(command, check=True, timeout=TOOL_S)
        return cls(folder, small=True)

    def fill(self) -> None:
        """To the last byte."""
        with open(self._ballast, "wb", buffering=0) as file:
            try:
                while file.write(bytes(CHUNK)) == CHUNK:
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        if self.small:
            subprocess.run(("umount", "--lazy", str(self.folder)), check=True, timeout=TOOL_S)
            self.small = False
