"""One run of pip under limits of time, output and disk; it judges no answer."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.config import inherited_environment
from jobs.errors import JobFailure, Transient
from jobs.model import Blame

QUESTION_SECONDS = 300.0
STALL_SECONDS = 300.0  # pip's own retries with back-off stay below this
OUTPUT_LIMIT_BYTES = 32 * 1024 * 1024
TICK_SECONDS = 0.25
CHUNK_BYTES = 65536
RETRY_ADVICE = (
    "nothing that was known has changed; `pip config list` shows the index in use, then retry"
)

_PROGRESS = re.compile(rb"^Progress (\d+) of (\d+)$", re.MULTILINE)
_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT[\d:,]+ ?")
_LINK_LINE = re.compile(r"\s+(Found|Skipping) link")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")

Progress = Callable[[int, int | None], None]
Check = Callable[[], None]


@dataclass(frozen=True)
class Answer:
    """What one run of pip said; `log` is its verbose log, credentials removed."""

    code: int
    output: str
    errors: str
    log: str

    @property
    def first_error(self) -> str:
        """Pip's first complaint: the reason, where later ones are consequences."""
        return self._complaints[0]

    @property
    def last_error(self) -> str:
        """Pip's own last word on what went wrong."""
        return self._complaints[-1]

    @property
    def _complaints(self) -> list[str]:
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        errors = [line.removeprefix("ERROR:").strip() for line in lines if "ERROR:" in line]
        told = errors or lines or [f"pip ended with code {self.code}"]
        return [without_credentials(line)[:400] for line in told]


def without_credentials(text: str) -> str:
    """`text` with user and password taken out of every address."""
    return _CREDENTIALS.sub("***@", text)


def ask(
    arguments: Sequence[str],
    *,
    log: Path | None = None,
    folder: Path | None = None,
    deadline_seconds: float = QUESTION_SECONDS,
    limit_bytes: int | None = None,
    on_progress: Progress | None = None,
    check: Check | None = None,
) -> Answer:
    """Run pip with `arguments`; its temporary files stay in `folder` and are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=".pip-", dir=folder) as name:
        own = Path(name).absolute()
        record = own / "pip.log"
        call = _Call(
            argv=(
                *(sys.executable, "-I", "-m", "pip", "--no-input", "--no-color"),
                *("--disable-pip-version-check", "--no-cache-dir", "--log", str(record)),
                *arguments,
            ),
            own=own,
            watched=folder or own,
            limit_bytes=limit_bytes,
            on_progress=on_progress,
            check=check,
        )
        try:
            code, output, errors = call.run(deadline_seconds)
        finally:
            said = _record(record)
            if log is not None:
                with log.open("a", encoding="utf-8") as file:
                    file.write(f"$ pip {' '.join(arguments)}\n{said}\n")
        return Answer(
            code, output.decode("utf-8", "replace"), errors.decode("utf-8", "replace"), said
        )


def _record(path: Path) -> str:
    """Pip's own log without the thousands of lines on files it did not choose."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        text = file.read(OUTPUT_LIMIT_BYTES).decode("utf-8", "replace")
    lines = (_STAMP.sub("", line) for line in text.splitlines())
    kept = "\n".join(line for line in lines if not _LINK_LINE.match(line))
    return without_credentials(kept)


@dataclass(frozen=True)
class _Call:
    argv: Sequence[str]
    own: Path
    watched: Path
    limit_bytes: int | None
    on_progress: Progress | None
    check: Check | None

    def run(self, deadline_seconds: float) -> tuple[int, bytes, bytes]:
        """Exit code and output; the process is gone when this returns or raises."""
        environment = inherited_environment(
            PIP_CONSTRAINT=os.devnull,
            PIP_QUIET="0",
            PIP_VERBOSE="0",
            PIP_REQUIRE_VIRTUALENV="0",
            TMPDIR=str(self.own.absolute()),
        )
        process = subprocess.Popen(
            self.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        try:
            output, errors = self._read(process, deadline_seconds)
            return process.wait(timeout=30), output, errors
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def _read(self, process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bytes]:
        texts = {process.stdout: bytearray(), process.stderr: bytearray()}
        ends_at = time.monotonic() + seconds
        looked_at = heard_at = time.monotonic()
        before = _used_bytes(self.watched)
        with selectors.DefaultSelector() as selector:
            for stream in texts:
                assert stream is not None  # noqa: S101  both are pipes
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select(TICK_SECONDS):
                    chunk = os.read(key.fd, CHUNK_BYTES)
                    if not chunk:
                        selector.unregister(key.fileobj)
                        continue
                    heard_at = time.monotonic()
                    text = texts[key.fileobj]  # type: ignore[index]
                    text += chunk
                    if len(text) > OUTPUT_LIMIT_BYTES:
                        raise Transient("pip talks without end", advice=RETRY_ADVICE)
                    if key.fileobj is process.stdout:
                        self._progress(text)
                if self.check is not None:
                    self.check()
                now = time.monotonic()
                if now > ends_at or now - heard_at > STALL_SECONDS:
                    raise Transient(
                        f"the package index kept pip waiting for {now - heard_at:.0f} s",
                        advice=RETRY_ADVICE,
                    )
                if self.limit_bytes is not None and now - looked_at > TICK_SECONDS:
                    looked_at = now
                    used = _used_bytes(self.watched) - before
                    if used > self.limit_bytes + OUTPUT_LIMIT_BYTES:
                        raise _too_large(used, self.limit_bytes)
        return bytes(texts[process.stdout]), bytes(texts[process.stderr])

    def _progress(self, text: bytearray) -> None:
        found = _PROGRESS.findall(text, max(0, len(text) - 2 * CHUNK_BYTES))
        if not found:
            return
        done, total = (int(number) for number in found[-1])
        if self.limit_bytes is not None and total > self.limit_bytes:
            raise _too_large(total, self.limit_bytes)
        if self.on_progress is not None:
            self.on_progress(done, total or None)


def _used_bytes(folder: Path) -> int:
    """Bytes under `folder`, in which pip makes and removes files at the same time."""
    used = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                used += (Path(parent) / name).stat().st_size
    return used


def _too_large(size_bytes: int, limit_bytes: int) -> JobFailure:
    return JobFailure(
        f"the download needs {size_bytes:,} bytes, {limit_bytes:,} are allowed",
        failure_class="download_too_large",
        blame=Blame.INFRASTRUCTURE,
        phase="download",
        advice="free disk space, or correct size_bytes in the watch list",
    )
