"""What makes git harmless: its settings, its surroundings, and the transports that it may use.

It refuses every transport but https, unless the operator's own configuration leads an address of
ours to this very machine.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

LOW_SPEED_SECONDS = 60
REWRITES_SECONDS = 10.0  # how long we take the operator's git configuration to be the same
CONFIG_SECONDS = 5.0
LOOPBACK = ("127.0.0.1", "::1", "localhost")
OPERATORS = (
    *("PATH", "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"),
    *("GIT_CONFIG_NOSYSTEM", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
)
HARDENED = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.symlinks=true",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.sshCommand=false",
    "core.askPass=",
    "credential.helper=",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "transfer.credentialsInUrl=die",
    "transfer.bundleURI=false",
    "http.followRedirects=initial",
    "http.userAgent=git/2 (forkscout; scouting of fork networks)",
    f"http.lowSpeedTime={LOW_SPEED_SECONDS}",
    "http.lowSpeedLimit=1000",
    "advice.detachedHead=false",
    "maintenance.auto=false",
)


def command() -> list[str]:
    """Git's words with every setting that makes it deaf; it dies with us where the system can."""
    setpriv = shutil.which("setpriv")
    mortal = [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []
    settings = [word for setting in HARDENED for word in ("-c", setting)]
    return [*mortal, "git", "--no-pager", "--no-replace-objects", *settings]


def _operators() -> dict[str, str]:
    return {name: os.environ[name] for name in OPERATORS if name in os.environ}


def environment(protocols: str) -> Mapping[str, str]:
    """All that git may know of its surroundings; it uses these transports, or none."""
    return {
        **_operators(),
        "LC_ALL": "C.UTF-8",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": protocols or "none",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_ATTR_NOSYSTEM": "1",
    }


def protocols_for(url: str) -> str:
    """https; where the operator's own `insteadOf` leads this address to this very machine, also
    `file`, or `http` alone."""
    rewrites = _rewrites(time.monotonic() // REWRITES_SECONDS, *_operators().items())
    matching = [(value, key) for value, key in rewrites if url.startswith(value)]
    if not matching:
        return "https"
    base = max(matching, key=lambda m: len(m[0]))[1][len("url.") : -len(".insteadof")]
    if base.startswith(("/", "file://")):
        return "https:file"
    return "http" if _is_loopback(base) else "https"


@functools.lru_cache(maxsize=1)
def _rewrites(*_moment_and_place: object) -> list[list[str]]:
    """Each `insteadOf` with its key, as the operator's configuration has them at that moment."""
    asked = subprocess.run(
        [*command(), "config", "--null", "--get-regexp", r"^url\..*\.insteadof$"],
        env=environment(""),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=CONFIG_SECONDS,
    )
    entries = [entry.split("\n", 1) for entry in asked.stdout.split("\0") if "\n" in entry]
    return [[value, key] for key, value in entries]


def _is_loopback(base: str) -> bool:
    try:
        parts = urlsplit(base)
        return parts.scheme == "http" and parts.hostname in LOOPBACK
    except ValueError:
        return False
