"""What may be a token, and which address of a service it may be sent to; pure, asks nothing."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from jobs.errors import UsageError

_TOKEN = re.compile(r"[!-~]{0,1000}")


def fits_a_header(token: str) -> bool:
    """Whether a text can be sent as a token: one line of printable ASCII without blanks."""
    return _TOKEN.fullmatch(token) is not None


def checked_base(base: str, *, setting: str, key_setting: str) -> str:
    """The address in a setting: over TLS, or to this machine itself; else a `UsageError`."""
    try:
        parts = urlsplit(base.rstrip("/"))
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    plain = re.fullmatch(r"[!-~]+", base) and not parts.query and not parts.fragment
    if host and not can_be_looked_up(host):
        host = ""
    if "@" in parts.netloc:
        raise UsageError(
            f"the address in {setting} holds a name or a password",
            advice=f"Write https://host there, and the token in {key_setting}.",
        )
    if not plain or not host or parts.scheme not in ("https", "http"):
        raise UsageError(
            f"{base[:80]!r} is no address of an API",
            advice=f"Write https://host in {setting}.",
        )
    if parts.scheme == "http" and not is_here(host):
        raise UsageError(
            f"{base[:80]!r} would be sent the token in clear",
            advice=f"Write https:// in {setting}; plain http is for this machine only.",
        )
    return base.rstrip("/")


def can_be_looked_up(host: str) -> bool:
    """Whether a host can be asked for at all: no label of it is empty or too long."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def is_here(host: str) -> bool:
    """Whether a host is this machine, so that nobody on the way reads along."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
