"""The one caller of pip, so that its own configuration and mirrors apply; it concludes no absence.

What a machine's pip configuration may change is where packages come from, never which file we get:
constraints, caches and other people's defaults for output are switched off.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from jobs.errors import JobFailure, Permanent, ScoutError, Transient, UsageError, disk_full
from jobs.model import Blame
from jobs.pip_process import RETRY_ADVICE, Answer, Check, Progress, ask, without_credentials

PACKAGE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?", re.ASCII)
DOWNLOAD_SECONDS = 6 * 3600.0

_UNREACHED = re.compile(r"Could not fetch URL (\S+?): (?!404 )(.*?)(?: - skipping)?$", re.MULTILINE)
_OFFERED = re.compile(r"\(from versions: ([^)]*)\)")


@dataclass(frozen=True)
class WheelSighting:
    """The file an index offers this machine for one version; its sha256 is its identity."""

    filename: str
    sha256: str
    size: int | None
    version: str
    yanked: bool = False


def checked_package(package: str) -> str:
    """`package` if it is a package name; anything else never reaches an argument list."""
    if not PACKAGE_NAME.fullmatch(package):
        raise UsageError(
            f"{package[:80]!r} is not a package name",
            advice="names hold letters, digits, dots, dashes and underscores",
        )
    return package


def checked_version(version: str) -> str:
    """`version` if it is an exact one; ranges and strangers' text are refused."""
    try:
        Version(version)
    except InvalidVersion:
        raise UsageError(
            f"{version[:80]!r} is not a package version", advice="name one exact version, as 1.2.3"
        ) from None
    return version


def versions(package: str, *, log: Path | None = None) -> list[str]:
    """Released versions with a wheel for this machine, newest first, yanked ones included.

    Raises `Transient` when any index in use could not be asked: a partial list is no list.
    """
    answer = ask(
        ["index", "versions", "--json", "--only-binary=:all:", "--", checked_package(package)],
        log=log,
    )
    if answer.code or _UNREACHED.search(answer.log):
        raise _fault(answer, package)
    listed = _json(answer.output, package).get("versions")
    if not isinstance(listed, list):
        raise _garbled(package)
    released = []
    for text in listed:
        try:
            version = Version(str(text))
        except InvalidVersion:
            continue
        if not version.is_prerelease:
            released.append((version, str(text)))
    return [text for _, text in sorted(released, reverse=True)]


def sight(package: str, version: str, *, log: Path | None = None) -> WheelSighting:
    """The wheel this machine would get, without installing it."""
    answer = ask(
        [
            "install",
            "--dry-run",
            "--ignore-installed",
            "--no-user",
            "--no-deps",
            "--only-binary=:all:",
            "--quiet",
            "--report",
            "-",
            "--",
            f"{checked_package(package)}=={checked_version(version)}",
        ],
        log=log,
    )
    if answer.code:
        raise _fault(answer, package, version)
    try:
        (item,) = _json(answer.output, package)["install"]
        url = str(item["download_info"]["url"])
        sha256 = str(item["download_info"]["archive_info"]["hashes"]["sha256"])
        found = str(item["metadata"]["version"])
        yanked = bool(item.get("is_yanked"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _garbled(package) from error
    if not re.fullmatch(r"[0-9a-f]{64}", sha256) or Version(found) != Version(version):
        raise _garbled(package)
    filename = url.partition("#")[0].partition("?")[0].rpartition("/")[2]
    return WheelSighting(filename[:255], sha256, None, found, yanked)


def download(
    package: str,
    version: str,
    into: Path,
    *,
    on_progress: Progress | None = None,
    check: Check | None = None,
    sha256: str | None = None,
    limit_bytes: int | None = None,
    log: Path | None = None,
) -> Path:
    """The wheel of one version in the folder `into`, of `sha256` where that is given.

    `on_progress` gets bytes and, where the index says it, their total. `check` is called several
    times a second and ends the download by raising. More than `limit_bytes` is never kept.
    """
    wanted = f"{checked_package(package)}=={checked_version(version)}"
    into.mkdir(parents=True, exist_ok=True)
    before = set(into.glob("*.whl"))
    answer = ask(
        [
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--progress-bar",
            "raw",
            "--dest",
            str(into.absolute()),
            "--",
            wanted,
        ],
        log=log,
        folder=into,
        deadline_seconds=DOWNLOAD_SECONDS,
        limit_bytes=limit_bytes,
        on_progress=on_progress,
        check=check,
    )
    if answer.code:
        raise _fault(answer, package, version)
    arrived = sorted(set(into.glob("*.whl")) - before)
    if len(arrived) != 1:
        raise _garbled(package)
    if sha256 is not None:
        _verify(arrived[0], sha256, wanted)
    return arrived[0]


def _verify(path: Path, sha256: str, wanted: str) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        path.unlink()
        raise JobFailure(
            f"{wanted} came with sha256 {found}, expected {sha256}",
            failure_class="wheel_sha256",
            blame=Blame.ENVIRONMENT,
            phase="download",
            advice="the index now offers another file for this version; look before you trust it",
        )


def _json(text: str, package: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise _garbled(package) from error
    if not isinstance(value, dict):
        raise _garbled(package)
    return value


def _garbled(package: str) -> Transient:
    return Transient(f"pip's answer about {package} makes no sense", advice=RETRY_ADVICE)


def _fault(answer: Answer, package: str, version: str | None = None) -> ScoutError:
    """What a failed run means; anything not understood is a passing fault, never an absence."""
    everything = answer.errors + answer.log
    if "No space left on device" in everything or "Disk quota exceeded" in everything:
        return disk_full(f"no room to download {package}", phase="download")
    if "no such option" in everything:
        return Permanent(
            f"this pip is too old: {answer.last_error}",
            advice="install forkscout from its lock file, which brings the right pip",
        )
    if unreached := _UNREACHED.search(answer.log):
        reason = without_credentials(unreached[2])[:300]
        return Transient(
            f"the package index did not answer about {package}: {reason}", advice=RETRY_ADVICE
        )
    if "No matching distribution found" not in everything:
        return Transient(
            f"the package index did not answer about {package}: {answer.last_error}",
            advice=RETRY_ADVICE,
        )
    offered = _OFFERED.search(answer.errors)
    if version is not None and offered and version in offered[1].split(", "):
        return Permanent(
            f"pip refuses the wheel of {package} {version}: {answer.first_error}",
            advice="another version, or tell its maker",
        )
    if version is not None and offered and offered[1] != "none":
        newest = ", ".join(reversed(offered[1].split(", ")[-5:]))
        return Permanent(
            f"{package} has no version {version} for this machine",
            advice=f"the newest it has are {newest}",
        )
    if "Fetched page" in answer.log:
        return Permanent(
            f"{package} offers no wheel this machine and Python can use",
            advice="another package, or another machine",
        )
    if "404 " in answer.log:
        return Permanent(
            f"the package index knows no package {package}",
            advice="check the spelling; `pip config list` shows the index in use",
        )
    return Transient(
        f"the package index did not answer about {package}: {answer.last_error}",
        advice=RETRY_ADVICE,
    )
