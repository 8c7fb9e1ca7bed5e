"""Who acts, for the audit and for what operators have set."""

import getpass
import os
import socket


def who_acts(through: str) -> str:
    """This user on this host: `cli:ann@host`, `app:ann@host`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user often has no name
        user = str(os.getuid())
    return f"{through}:{user}@{socket.gethostname()}"
