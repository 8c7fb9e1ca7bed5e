"""A private Redis: its own folder and port, killed and restarted at will.

It belongs to the test process that started it and ends with it. It keeps an append-only file, synced once a
second, as people run it; `settings` say otherwise.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

from tests.leash import label
from tests.servers.postgres import NoServer, free_port

HINT = "install it with: apt-get install --no-install-recommends redis-server"
DATABASES = 512
PROGRAM = "TIDEMILL_REDIS_SERVER"
"""Of the environment: another server than the one that is found, as Redis 6.2 or Valkey."""
WITHOUT_TLS = (">>> 'tls-port", "Failed finding TLS support")
"""What a server says that was built without it: Redis 6.2, Valkey."""


class RedisServer:
    """One server. `start` it before use, `close` it at the end."""

    def __init__(
        self,
        *,
        settings: dict[str, str] | None = None,
        environment: dict[str, str] | None = None,
        disk: Path | None = None,
    ) -> None:
        program = os.environ.get(PROGRAM) or shutil.which("redis-server") or shutil.which("valkey-server")
        if program is None:
            raise NoServer(f"redis-server is not installed; {HINT}")
        self._program = program
        self.settings = {"appendonly": "yes", "appendfsync": "everysec", "save": "", **(settings or {})}
        self.environment = {"LANG": "C.UTF-8", **(environment or {})}
        self.folder = Path(tempfile.mkdtemp(prefix=f"{label()}-redis-", dir=disk))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._log = open(self.folder / "log", "ab")  # noqa: SIM115  (closed in close)

    def url(self, database: int = 0, user: str = "") -> str:
        """With a `user` as it stands before the host: `name:password@`."""
        return f"redis://{user}127.0.0.1:{self.port}/{database}"

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, timeout: float = 30) -> "RedisServer":
        """Start, or start again after a kill; returns when it answers."""
        settings = [part for name, value in self.settings.items() for part in (f"--{name}", value)]
        self._process = subprocess.Popen(
            [self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder),
             "--databases", str(DATABASES), "--daemonize", "no", *settings],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )  # fmt: skip
        end = time.monotonic() + timeout
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                log = self.log()[-2_000:]
                self.close()
                if any(said in log for said in WITHOUT_TLS):
                    raise NoServer(f"{self._program} was built without TLS")
                raise RuntimeError("Redis did not start:\n" + log)
            time.sleep(0.01)
        return self

    def copied_by(self, other: "RedisServer", timeout: float = 30) -> None:
        """Let another follow this one; returns when it has everything."""
        self.command("CONFIG", "SET", "repl-diskless-sync-delay", "0")
        assert other.command("REPLICAOF", "127.0.0.1", str(self.port)).startswith(b"+OK")
        self.wait_for(other, timeout)

    def wait_for(self, other: "RedisServer", timeout: float = 30) -> None:
        """Until a replica has what this server has written so far."""
        written, end = self._offset("master_repl_offset"), time.monotonic() + timeout
        while other._offset("slave_repl_offset") < written or not other._follows():
            if time.monotonic() > end:
                raise RuntimeError("the replica does not follow:\n" + other.log()[-2_000:])
            time.sleep(0.01)

    def _follows(self) -> bool:
        return b"master_link_status:up" in self.command("INFO", "replication")

    def _offset(self, name: str) -> int:
        found = re.search(rf"{name}:(\d+)".encode(), self.command("INFO", "replication"))
        return int(found[1]) if found else -1

    def kill(self) -> None:
        """kill -9, as a power cut would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(10)

    def stop(self) -> None:
        """End in order: everything that was acknowledged is in the file."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(30)

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def command(self, *parts: str | bytes, database: int = 0) -> bytes:
        """What the server answers to one command, as it is on the wire. For commands of a test's own."""
        with closing(socket.create_connection(("127.0.0.1", self.port), 5)) as sock:
            if database:
                self._ask(sock, "SELECT", str(database))
            return self._ask(sock, *parts)

    @staticmethod
    def _ask(sock: socket.socket, *parts: str | bytes) -> bytes:
        encoded = [part if isinstance(part, bytes) else part.encode() for part in parts]
        sock.sendall(b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in encoded))
        return sock.recv(1 << 16)

    def _answers(self) -> bool:
        """Whether it has read its file and takes commands."""
        with suppress(OSError):
            return self.command("PING").startswith((b"+PONG", b"-NOAUTH"))
        return False
