"""A private RabbitMQ node from the system's package: folder, ports and name mapper its own, on loopback."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from bench.peers.brokers import first_number
from penstock.cli.bench.crew import cpu_s_of
from tests.servers.postgres import NoServer, free_port

PROGRAM = "/usr/lib/rabbitmq/bin/rabbitmq-server"
"""Not the one on PATH, which is the system's own node."""
HINT = "install it with: apt-get install --no-install-recommends rabbitmq-server"
READY_S = 60.0
END_S = 15.0


class RabbitMQ:
    """One node with stock settings: durable queues, persistent messages."""

    def __init__(self, folder: Path) -> None:
        if not Path(PROGRAM).exists() or shutil.which("epmd") is None:
            raise NoServer(f"rabbitmq-server is not installed; {HINT}")
        self._home = Path(tempfile.mkdtemp(prefix="penstock-rabbitmq-"))
        port, names = free_port(), free_port()
        self.url = self.place = f"amqp://guest:guest@127.0.0.1:{port}/"
        self._environment = {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self._home),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(names),
            "RABBITMQ_NODENAME": f"bench{os.getpid()}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_MNESIA_BASE": str(self._home / "data"),
            "RABBITMQ_LOG_BASE": str(self._home),
            "RABBITMQ_PID_FILE": str(self._home / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._home / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(self._home / "none"),
            "RABBITMQ_CONFIG_FILE": str(self._home / "none"),
        }
        (self._home / "plugins").write_text("[].\n")
        self._log = open(self._home / "said", "ab")  # noqa: SIM115  (closed in close)
        self._names = self._start("epmd", "-address", "127.0.0.1", "-port", str(names))
        self._node = self._start(PROGRAM)
        try:
            self._await()
            self.version = f"RabbitMQ {self._ctl('version')}"
        except BaseException:
            self.close()
            raise

    def _start(self, *command: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            command,
            cwd=self._home,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def _ctl(self, *command: str) -> str:
        said = subprocess.run(
            [str(Path(PROGRAM).with_name("rabbitmqctl")), *command],
            env=self._environment,
            cwd=self._home,
            capture_output=True,
            text=True,
            check=True,
        )
        return first_number(said.stdout)

    def _await(self) -> None:
        """Until the node says that it is up."""
        end = time.monotonic() + READY_S
        while b"completed with" not in (said := (self._home / "said").read_bytes()):
            if self._node.poll() is not None or time.monotonic() > end:
                raise RuntimeError("RabbitMQ did not start: " + said.decode(errors="replace")[-1_000:])
            time.sleep(0.1)

    def cpu_s(self) -> float:
        pids = [self._node.pid]
        for pid in pids:  # grows while it is walked
            children = Path(f"/proc/{pid}/task/{pid}/children")
            pids += map(int, children.read_text().split()) if children.exists() else ()
        return sum(map(cpu_s_of, pids))

    def close(self) -> None:
        for process in (self._node, self._names):
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()
        shutil.rmtree(self._home, ignore_errors=True)
