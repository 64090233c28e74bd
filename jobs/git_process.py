"""Starts git once, hardened, with a deadline and bounded output, and sorts its faults.

It refuses hooks, prompts and filters, and a git that grows or writes without end; without a `url`
git may use no transport at all.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from pydantic import SecretStr

from jobs import git_memory, git_token
from jobs.errors import Permanent, Transient, UsageError, disk_full
from jobs.git_hardening import command, environment, protocols_for
from jobs.git_memory import TooMuch

QUICK_SECONDS = 60.0
LIST_SECONDS = 90.0  # an honest list comes in a few
NETWORK_SECONDS = 3600.0
OUTPUT_BYTES = 256 * 2**20
PIECE_BYTES = 2**16
TICK_SECONDS = 0.2
GRACE_SECONDS = 5.0
MISSING = re.compile(
    r"not found|returned error: 404|could not read Username|does not exist"
    r"|does not appear to be a git repository",
    re.IGNORECASE,
)
REDIRECTED = re.compile(r"returned error: 30[1278]")
REFUSED_TOKEN = re.compile(r"could not read Username|Authentication failed", re.IGNORECASE)
NO_MEMORY = re.compile(r"^(fatal|error): .*out of memory", re.IGNORECASE | re.MULTILINE)
FULL_DISK = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)


def ask(
    words: Sequence[str],
    *,
    mirror: Path | None = None,
    url: str | None = None,
    online: bool = False,
    seconds: float | None = None,
    cwd: Path | None = None,
    text: str = "",
    exact: bool = False,
    output_bytes: int = OUTPUT_BYTES,
    memory_bytes: int | None = None,
    empty_codes: Sequence[int] = (),
    on_line: Callable[[str], None] | None = None,
    tick: Callable[[], None] | None = None,
    token: SecretStr | None = None,
) -> str:
    """What git wrote. `url` is where it may reach for, without one nowhere; `online` gives it time.

    An exit code in `empty_codes` means "nothing found". `tick` is called several times a second.
    A `token` is shown to GitHub alone; where GitHub redirects, git follows without it. `exact`
    keeps bytes that are no text, as surrogates, so that a name can be given back to git; else they
    are replaced. Raises `TooMuch` beyond `output_bytes`, `memory_bytes` or what any git may have.
    """
    place = ["--git-dir", str(mirror)] if mirror else []

    def call(token: SecretStr | None) -> str:
        with tempfile.TemporaryFile() as output:
            found = _call(
                [*place, *words],
                output,
                url=url,
                cwd=cwd,
                text=text,
                timeout_seconds=seconds or (NETWORK_SECONDS if online else QUICK_SECONDS),
                output_bytes=output_bytes,
                memory_bytes=memory_bytes,
                empty_codes=empty_codes,
                on_line=on_line,
                tick=tick,
                token=token,
            )
            return _read(output, "surrogateescape" if exact else "replace") if found else ""

    if not git_token.belongs_to(token, url):
        return call(None)
    try:
        return call(token)
    except _Redirected:
        return call(None)


def fields(words: Sequence[str], *, mirror: Path, output_bytes: int) -> Iterator[str]:
    """What git wrote between zero bytes, one by one: all of it is never in our memory at once."""
    with tempfile.TemporaryFile() as output:
        _call(
            ["--git-dir", str(mirror), *words],
            output,
            url=None,
            cwd=None,
            text="",
            timeout_seconds=QUICK_SECONDS,
            output_bytes=output_bytes,
        )
        output.seek(0)
        rest = b""
        while piece := output.read(PIECE_BYTES):
            *whole, rest = (rest + piece).split(b"\0")
            yield from (field.decode(errors="replace") for field in whole)


class TooSlow(Transient):
    """That takes too long"""


class _Redirected(Transient):
    """GitHub knows the repository under another name; the token was not taken there."""


def _call(
    words: Sequence[str],
    output: IO[bytes],
    *,
    url: str | None,
    cwd: Path | None,
    text: str,
    timeout_seconds: float,
    output_bytes: int,
    memory_bytes: int | None = None,
    empty_codes: Sequence[int] = (),
    on_line: Callable[[str], None] | None = None,
    tick: Callable[[], None] | None = None,
    token: SecretStr | None = None,
) -> bool:
    """Whether git found something; what it wrote is in `output`."""
    surroundings = environment("" if url is None else protocols_for(url))
    with tempfile.TemporaryFile() as complaints:
        with (
            tempfile.TemporaryFile() as given,
            git_token.shown(token) as shown,
            _lifeline() as (ended, held),
        ):
            given.write(text.encode(errors="surrogateescape"))
            given.seek(0)
            process = subprocess.Popen(
                [*git_memory.wall(), *command(), *shown.words, *words],
                pass_fds=(*shown.descriptors, held.fileno()),
                env=surroundings,
                cwd=cwd or "/",
                stdin=given,
                stdout=output,
                stderr=complaints,
                start_new_session=True,
            )
            held.close()

            def look() -> None:
                _measure(output, complaints, output_bytes)
                git_memory.weigh(process.pid, limit_bytes=memory_bytes)
                if tick:
                    tick()

            try:
                code = _await(process, ended, complaints, timeout_seconds, on_line, look)
            finally:
                _end(process)
            _measure(output, complaints, output_bytes)
        if code in empty_codes:
            return False
        if code != 0:
            raise _fault(_read(complaints), url, has_token=token is not None)
        return True


@contextlib.contextmanager
def _lifeline() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Two ends of a pipe: whoever holds the second is over when the first can be read."""
    one, other = os.pipe()
    with os.fdopen(one, "rb", 0) as ended, os.fdopen(other, "wb", 0) as held:
        yield ended, held


def _await(
    process: subprocess.Popen[bytes],
    ended: IO[bytes],
    complaints: IO[bytes],
    timeout_seconds: float,
    on_line: Callable[[str], None] | None,
    look: Callable[[], None],
) -> int:
    deadline = time.monotonic() + timeout_seconds
    passed_on = 0
    end = select.poll()
    end.register(ended)
    while True:
        # Told at once; to wait for the process itself would be to look for it now and then.
        is_over = bool(end.poll(TICK_SECONDS * 1000))
        if is_over or process.poll() is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(TICK_SECONDS)
        look()
        if on_line:
            passed_on = _pass_on(complaints, passed_on, on_line)
        if time.monotonic() > deadline:
            raise TooSlow(f"git took longer than {timeout_seconds:g} s", advice="Try again later.")


def _measure(output: IO[bytes], complaints: IO[bytes], output_bytes: int) -> None:
    if _size(output) > output_bytes or _size(complaints) > OUTPUT_BYTES:
        raise TooMuch("git wrote more than it may", advice="Look at the repository by hand.")


def _pass_on(complaints: IO[bytes], start: int, on_line: Callable[[str], None]) -> int:
    """Whole lines since `start`; read in place, because git shares the file's position."""
    size = _size(complaints)
    data = os.pread(complaints.fileno(), size - start, start)
    whole = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    for line in data[:whole].replace(b"\r", b"\n").decode(errors="replace").split("\n"):
        if line.strip():
            on_line(_printable(line))
    return start + whole


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
            return


def _fault(said: str, url: str | None, *, has_token: bool) -> Exception:
    lines = [line for line in said.replace("\r", "\n").split("\n") if line.strip()]
    reasons = [line for line in lines if re.match(r"(fatal|error|remote):", line)]
    last = _printable((reasons or lines or ["git failed and said nothing"])[-1])[:300]
    full = next(filter(FULL_DISK.search, lines), None)
    if full is not None:
        return disk_full(_printable(full)[:300])
    if NO_MEMORY.search(said):
        return TooMuch(
            "git asked for more memory than it may have", advice="Look at the repository by hand."
        )
    if url is None:
        return Permanent(last, advice="Look at the repository by hand.")
    if "not allowed" in said and "transport" in said:
        return UsageError(last, advice="Repositories are read over https only.")
    if has_token and REDIRECTED.search(said):
        return _Redirected(f"{url}: {last}", advice="look at where the repository moved")
    if has_token and REFUSED_TOKEN.search(said):
        return Permanent(
            f"{url}: GitHub does not take the token",
            advice="renew FORKSCOUT_GITHUB_TOKEN, or leave it empty to ask without one",
        )
    if MISSING.search(said):
        return Permanent(
            f"{url}: {last}", advice="Check the name; the repository may be renamed or private."
        )
    return Transient(
        f"{url}: {last}", advice="look at the network and try again; a job tries again by itself"
    )


def _read(file: IO[bytes], errors: str = "replace") -> str:
    return os.pread(file.fileno(), _size(file), 0).decode(errors=errors)


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def _printable(text: str) -> str:
    return "".join(c for c in text if c.isprintable())
