"""A private RabbitMQ node from the system's package: folder, ports and name mapper its own, on loopback."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bench.peers.brokers import first_number
from tests.servers.postgres import NoServer, free_port
from tidemill.cli.bench.workers import cpu_s_of

PROGRAM = "/usr/lib/rabbitmq/bin/rabbitmq-server"
"""Not the one on PATH, which is the system's own node."""
HINT = (
    "install it with: apt-get install --no-install-recommends rabbitmq-server (its service may stay off: the "
    "benchmark starts a node of its own)"
)
READY_S = 60.0
END_S = 15.0


class RabbitMQ:
    """One node with stock settings: durable queues, persistent messages."""

    def __init__(self, folder: Path) -> None:
        if not Path(PROGRAM).exists() or shutil.which("epmd") is None:
            raise NoServer(f"rabbitmq-server is not installed; {HINT}")
        self.home = Path(tempfile.mkdtemp(prefix="tidemill-rabbitmq-"))
        port, names = free_port(), free_port()
        self.url = self.place = f"amqp://guest:guest@127.0.0.1:{port}/"
        self._environment = {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(names),
            "RABBITMQ_NODENAME": f"bench{os.getpid()}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_MNESIA_BASE": str(self.home / "data"),
            "RABBITMQ_LOG_BASE": str(self.home),
            "RABBITMQ_PID_FILE": str(self.home / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.home / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(self.home / "none"),
            "RABBITMQ_CONFIG_FILE": str(self.home / "none"),
        }
        (self.home / "plugins").write_text("[].\n")
        self._log = open(self.home / "said", "ab")  # noqa: SIM115  (closed in close)
        self._started: list[subprocess.Popen[bytes]] = []
        try:
            # Not a daemon: it ends with us. It has to be there first, or the node would start one of its own.
            self._start("epmd", "-address", "127.0.0.1", "-port", str(names))
            self._await("its name mapper", lambda: _answers(names))
            self._node = self._start(PROGRAM)
            self._await("the node", lambda: b"completed with" in self._said())
            self.version = f"RabbitMQ {self._ctl('version')}"
        except BaseException:
            self.close()
            raise

    def _start(self, *command: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            command,
            cwd=self.home,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def _said(self) -> bytes:
        return (self.home / "said").read_bytes()

    def _ctl(self, *command: str) -> str:
        said = subprocess.run(
            [str(Path(PROGRAM).with_name("rabbitmqctl")), *command],
            env=self._environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=True,
        )
        return first_number(said.stdout)

    def _await(self, what: str, up: Callable[[], bool]) -> None:
        """Until what was started last is up."""
        end = time.monotonic() + READY_S
        while not up():
            if self._started[-1].poll() is not None or time.monotonic() > end:
                said = self._said().decode(errors="replace")[-1_000:]
                raise RuntimeError(f"RabbitMQ did not start ({what}): {said}")
            time.sleep(0.1)

    def cpu_s(self) -> float:
        pids = [self._node.pid]
        for pid in pids:  # grows while it is walked
            children = Path(f"/proc/{pid}/task/{pid}/children")
            pids += map(int, children.read_text().split()) if children.exists() else ()
        return sum(map(cpu_s_of, pids))

    def close(self) -> None:
        for process in reversed(self._started):
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()
        shutil.rmtree(self.home, ignore_errors=True)


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
