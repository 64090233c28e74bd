"""A real Redis or Valkey server on a unix socket in a short folder of its own."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

START_SECONDS = 15.0


class Broker:
    """Starts, flushes, kills and starts again; nothing of it is kept on disk."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.folder = Path(tempfile.mkdtemp(prefix="fs-br-"))
        self.socket = self.folder / "s"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis+socket://{self.socket}"

    def client(self) -> Redis:
        return Redis(unix_socket_path=str(self.socket))

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [
                *(self.program, "--port", "0", "--unixsocket", str(self.socket)),
                *("--dir", str(self.folder), "--save", "", "--appendonly", "no"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert time.monotonic() < deadline, f"{self.program} did not start"
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except RedisError:
            return False

    def flush(self) -> None:
        with self.client() as client:
            client.flushall()

    def kill(self) -> None:
        """End it as a crash does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def remove(self) -> None:
        """End it and leave nothing."""
        self.kill()
        shutil.rmtree(self.folder)
