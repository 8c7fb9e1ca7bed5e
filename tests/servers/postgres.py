"""A private PostgreSQL: its own folder and port, killed and restarted at will.

It belongs to the test process that started it and ends with it. `durable` keeps the stock settings, for
benchmarks; tests run without fsync, which changes nothing that a killed process could notice.
"""

import errno
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.leash import label

FOLDERS = ("/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/pgsql/bin")
HINT = "install it with: apt-get install --no-install-recommends postgresql"
ACCOUNTS = ("postgres", "nobody")
"""Whom the server runs as when the tests run as root, which PostgreSQL refuses."""
TOOL_S = 120.0
"""How long its tools may take: initdb, a copy of the data, a promotion."""


class NoServer(Exception):
    """PostgreSQL is not installed here."""


def program(name: str) -> str:
    """The path of one of PostgreSQL's programs, of the newest version that is installed."""
    found = [path for folder in FOLDERS for path in sorted(glob.glob(f"{folder}/{name}"), reverse=True)]
    path = found[0] if found else shutil.which(name)
    if path is None:
        raise NoServer(f"{name} is not installed; {HINT}")
    return path


def free_port() -> int:
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class PostgresServer:
    """One server. `start` it before use, `close` it at the end."""

    def __init__(
        self,
        *,
        durable: bool = False,
        settings: dict[str, str] | None = None,
        hba: str | None = None,
        disk: Path | None = None,
    ) -> None:
        self._postgres, self._initdb = program("postgres"), program("initdb")
        self._hba = hba
        self._settings = {"fsync": "on" if durable else "off", **(settings or {})}
        self.folder = Path(tempfile.mkdtemp(prefix=f"{label()}-postgres-", dir=disk))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._log = open(self.folder / "log", "ab")  # noqa: SIM115  (closed in close)
        self._account: dict[str, Any] = {}
        if os.geteuid() == 0:
            who = account()
            self._account = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
            os.chown(self.folder, who.pw_uid, who.pw_gid)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://tidemill@127.0.0.1:{self.port}/{database}"

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, timeout: float = 60) -> "PostgresServer":
        """Start, or start again after a kill; returns when it answers."""
        data = self.folder / "data"
        if not data.exists():
            self._run("cp", "-a", str(self._untouched()), str(data))
            if self._hba is not None:
                (data / "pg_hba.conf").write_text(self._hba)
        end = time.monotonic() + timeout
        self._process = None
        while self._process is None or not self._answers():
            if time.monotonic() > end:
                raise RuntimeError("PostgreSQL did not start:\n" + self.log()[-2_000:])
            if self._process is None or self._process.poll() is not None:  # again, when it gave up at once
                self._process = self._launch()
            time.sleep(0.02)
        return self

    def standby(self) -> "PostgresServer":
        """A second server that follows this one, started: a primary once it is promoted."""
        other = PostgresServer(settings=self._settings)
        self._run(
            program("pg_basebackup"), "-D", str(other.folder / "data"), "-h", "127.0.0.1",
            "-p", str(self.port), "-U", "tidemill", "-R", "-X", "stream", "-c", "fast", "--no-sync",
        )  # fmt: skip
        return other.start()

    def promote(self) -> None:
        """Let a standby take over; returns when it can be written to."""
        self._run(program("pg_ctl"), "-D", str(self.folder / "data"), "-w", "promote")

    def kill(self) -> None:
        """kill -9 of all of it at once, as a power cut would; stopped first, so that none can tidy up."""
        assert self._process is not None
        self._signal(signal.SIGSTOP)
        self._signal(signal.SIGKILL)
        self._process.wait(10)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def own(self, *paths: Path) -> None:
        """Give files to the account that the server runs as."""
        if self._account:
            for path in paths:
                os.chown(path, self._account["user"], self._account["group"])

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def pids(self) -> list[int]:
        """The server's process and all below it: its children each leave the process group."""
        assert self._process is not None
        children: dict[int, list[int]] = {}
        for stat in glob.glob("/proc/[0-9]*/stat"):
            with suppress(OSError):
                pid, rest = Path(stat).read_text().split(" ", 1)
                children.setdefault(int(rest.rpartition(")")[2].split()[1]), []).append(int(pid))
        found = [self._process.pid]
        for parent in found:
            found += children.get(parent, [])
        return found

    def _untouched(self) -> Path:
        """Files of a server that was never started, made once on this machine: initdb takes a second."""
        made_by = Path(self._initdb).resolve().stat()
        name = f"tidemill-initdb-{self._account.get('user', os.geteuid())}-{made_by.st_mtime_ns:x}"
        cached = Path(tempfile.gettempdir(), name)
        if not cached.exists():
            self._make(cached)
        return cached

    def _make(self, cached: Path) -> None:
        """Put it there as a whole. It is made beside `cached`, because our folder may be on another file
        system: nothing can be renamed from there to here."""
        with tempfile.TemporaryDirectory(prefix=f"{label()}-initdb-", dir=cached.parent) as folder:
            self.own(Path(folder))
            made = Path(folder, "made")
            self._run(
                self._initdb, "-D", str(made), "-U", "tidemill", "-A", "trust", "-E", "UTF8", "--locale=C",
                "--no-sync", "--wal-segsize=1",  # MB; it is 16 else, and each server writes a few
            )  # fmt: skip
            try:
                made.rename(cached)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # another process was quicker
                    raise

    def _launch(self) -> "subprocess.Popen[bytes]":
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        return subprocess.Popen(
            [self._postgres, "-D", str(self.folder / "data"), "-p", str(self.port), "-k", str(self.folder),
             "-c", "listen_addresses=127.0.0.1", *settings],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            **self._account,
        )  # fmt: skip

    def _run(self, *command: str) -> None:
        subprocess.run(
            command,
            check=True,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            timeout=TOOL_S,
            **self._account,
        )

    def _signal(self, number: int) -> None:
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _answers(self) -> bool:
        """Whether it takes connections: it answers a startup message with a request to authenticate."""
        body = b"\x00\x03\x00\x00user\x00tidemill\x00database\x00postgres\x00\x00"
        with suppress(OSError), closing(socket.create_connection(("127.0.0.1", self.port), 1)) as sock:
            sock.sendall((len(body) + 4).to_bytes(4, "big") + body)
            return sock.recv(64).startswith(b"R")
        return False


def account() -> pwd.struct_passwd:
    for name in ACCOUNTS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise NoServer("PostgreSQL refuses to run as root, and there is no other account for it")
