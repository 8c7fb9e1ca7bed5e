"""A private PgBouncer before a PostgreSQL: its own folder and port."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.leash import label
from tests.servers.postgres import NoServer, PostgresServer, account, free_port

FOLDERS = ("/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin")
KEEPS_STATEMENTS_SINCE = (1, 21)
"""From here on it can keep prepared statements itself; from 1.24 on it does so unless told otherwise."""
HINT = "install it with: apt-get install --no-install-recommends pgbouncer"


def program() -> str:
    """The path of PgBouncer."""
    path = shutil.which("pgbouncer", path=os.pathsep.join((*FOLDERS, os.environ.get("PATH", ""))))
    if path is None:
        raise NoServer(f"pgbouncer is not installed; {HINT}")
    return path


def version() -> tuple[int, ...]:
    """Such as (1, 24, 1)."""
    printed = subprocess.run((program(), "--version"), capture_output=True, text=True, check=True).stdout
    found = re.search(r"PgBouncer ([0-9.]+)", printed)
    assert found is not None, printed
    return tuple(map(int, found[1].split(".")))


class PgBouncer:
    """One pooler, in transaction mode unless told otherwise. `start` it before use, `close` it at the end."""

    def __init__(
        self, server: PostgresServer, *, mode: str = "transaction", size: int = 5, statements: int = 200
    ) -> None:
        """`statements`: how many prepared ones it keeps for each connection, if its version can do that."""
        self._program = program()
        self.keeps_statements = statements > 0 and version() >= KEEPS_STATEMENTS_SINCE
        self._folder = Path(tempfile.mkdtemp(prefix=f"{label()}-pgbouncer-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._account: dict[str, Any] = {}
        users = self._folder / "users.txt"
        users.write_text('"tidemill" ""\n')
        settings = self._folder / "pgbouncer.ini"
        settings.write_text(
            "[databases]\n"
            f"* = host=127.0.0.1 port={server.port}\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {users}\npool_mode = {mode}\ndefault_pool_size = {size}\n"
            "max_client_conn = 200\nserver_idle_timeout = 5\n"
            + (f"max_prepared_statements = {statements}\n" if version() >= KEEPS_STATEMENTS_SINCE else "")
        )
        self._settings = settings
        if os.geteuid() == 0:  # which PgBouncer refuses to run as
            who = account()
            self._account = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
            for path in (self._folder, users, settings):
                os.chown(path, who.pw_uid, who.pw_gid)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://tidemill@127.0.0.1:{self.port}/{database}"

    def start(self, timeout: float = 30) -> "PgBouncer":
        """Returns when it takes connections."""
        with open(self._folder / "log", "ab") as output:
            self._process = subprocess.Popen(
                [self._program, str(self._settings)],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                **self._account,
            )
        end = time.monotonic() + timeout
        while not self._answers():
            if time.monotonic() > end or self._process.poll() is not None:
                raise RuntimeError("PgBouncer did not start:\n" + self.log()[-2_000:])
            time.sleep(0.02)
        return self

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(10)
        shutil.rmtree(self._folder, ignore_errors=True)

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def _answers(self) -> bool:
        with suppress(OSError), closing(socket.create_connection(("127.0.0.1", self.port), 1)):
            return True
        return False
