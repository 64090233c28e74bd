"""One started step: its process tree and its bounded log; it decides nothing about the outcome."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import psutil

from jobs.errors import NO_ROOM, JobFailure, disk_full
from jobs.model import Blame
from workers.tree import Tree

CHUNK_BYTES = 65536
DRAIN_SECONDS = 5.0
RESCAN_SECONDS = 0.05


def unique_marker(marker: str) -> str:
    """A marker below the job's own, so that ending one step spares the job's other steps."""
    return f"{marker}/{uuid.uuid4().hex[:12]}"


class Running:
    """A started tree. Always stop it, or use it in a `with` block, even when it has ended."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        log: Path,
        output_bytes: int,
        caged: bool,
        tree: Callable[[int], Tree],
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.log = log
        self.started_at = time.monotonic()
        self.output_at = self.started_at
        self._caged = caged
        self._output_bytes = output_bytes
        self._failure: JobFailure | None = None
        self._ending = threading.Lock()
        self._log_fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        reader, writer = os.pipe()
        try:
            self._process = subprocess.Popen(
                argv,
                env=env,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                start_new_session=True,
                pass_fds=pass_fds,
            )
        except OSError as error:
            os.close(reader)
            os.close(self._log_fd)
            raise JobFailure(
                f"could not start {argv[0]}: {error.strerror}",
                failure_class="start_failed",
                blame=Blame.INFRASTRUCTURE,
                advice="Check that the program and its working folder are there.",
            ) from error
        finally:
            os.close(writer)
        try:
            self._tree = tree(self._process.pid)
        except BaseException:
            os.close(reader)
            os.close(self._log_fd)
            self._process.kill()
            self._process.wait()
            raise
        self._pump = threading.Thread(target=self._copy_output, args=(reader,), daemon=True)
        self._pump.start()

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process we started ourselves."""
        return self._process.pid

    @property
    def first(self) -> int:
        """The process that all of the step's own descend from."""
        return self._tree.first

    @property
    def failure(self) -> JobFailure | None:
        """Why the tree was ended by its own log, None as long as it was not."""
        return self._failure

    def poll(self) -> int | None:
        """The exit code, negative for a signal, None while it runs. A cage's 128+n is a signal."""
        code = self._process.returncode
        if code is None:
            # Not reaped here: the pid, and with it the session, stays ours until `stop`.
            state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if state is None:
                return None
            code = state.si_status if state.si_code == os.CLD_EXITED else -state.si_status
        return 128 - code if self._caged and code > 128 else code

    def owns(self, pid: int) -> bool:
        """Whether that process of our own pid namespace is in this tree."""
        return self._tree.owns(pid)

    def members(self) -> list[psutil.Process]:
        """Every living process of the tree."""
        return self._tree.members()

    def struck(self, *, ended: bool = False) -> str | None:
        """The bound that the kernel enforced: `memory`, `processes`, or None."""
        return self._tree.struck(ended=ended)

    def start_fault(self, code: int) -> JobFailure | None:
        """Why the step never began, None where it did; ask before `stop`."""
        return self._tree.start_fault(code)

    def stop(self, grace_seconds: float = 0.0) -> None:
        """TERM, then after the grace KILL to the whole tree; it is gone when this returns."""
        with self._ending:
            if self._process.returncode is not None:
                return
            if grace_seconds > 0 and self.poll() is None:
                self._ask_to_end(grace_seconds)
            self._tree.kill()
            self._process.wait()
            self._tree.close()
        self._pump.join(DRAIN_SECONDS)

    def _ask_to_end(self, grace_seconds: float) -> None:
        # The cage's outer process would take everything down at once, and the first one inside
        # passes a signal on: whoever is dying of it would get it twice.
        spared = {self.pid, self.first} if self._caged else set()
        for process in self.members():
            if process.pid in spared:
                continue
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                process.terminate()
        deadline = time.monotonic() + grace_seconds
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(RESCAN_SECONDS)

    def _copy_output(self, reader: int) -> None:
        room = self._output_bytes
        try:
            while chunk := os.read(reader, CHUNK_BYTES):
                self.output_at = time.monotonic()
                if self._failure:
                    continue
                try:
                    _write_all(self._log_fd, chunk[:room])
                except OSError as error:
                    self._end_with(_log_fault(error))
                    continue
                room -= len(chunk)
                if room < 0:
                    self._end_with(_too_much_output(self._output_bytes))
        finally:
            os.close(reader)
            os.close(self._log_fd)

    def _end_with(self, failure: JobFailure) -> None:
        self._failure = failure
        for process in self.members():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                process.kill()


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _too_much_output(output_bytes: int) -> JobFailure:
    return JobFailure(
        f"it wrote more than {output_bytes} bytes of output",
        failure_class="output_limit",
        blame=Blame.ENGINE,
        advice="Read the end of the log: a loop that prints is the usual cause.",
    )


def _log_fault(error: OSError) -> JobFailure:
    detail = f"the log could not be written: {error.strerror}"
    if error.errno in NO_ROOM:
        return disk_full(detail)
    return JobFailure(
        detail,
        failure_class="log_failed",
        blame=Blame.INFRASTRUCTURE,
        advice="Look at the disk and the permissions of the home folder.",
    )
