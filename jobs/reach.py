"""Tells hosts of this machine and its networks from public ones; looks names up, connects to none.

An address that the operator wrote may be private. One that a public server leads to may not: it
would make us ask, on behalf of strangers, what only we can reach.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable

LookUp = Callable[[str], Iterable[str]]

LOCAL_NAMES = ("localhost", "localdomain", "local", "internal", "home.arpa")

TRANSLATED = tuple(
    ipaddress.IPv6Network(each) for each in ("::/96", "64:ff9b::/96", "64:ff9b:1::/48")
)


def look_up(host: str) -> list[str]:
    """The addresses that a host means now, however it is written; none where nobody knows it."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [str(each[4][0]) for each in found]


def is_inside(host: str, look_up: LookUp = look_up) -> bool:
    """Whether a host is this machine, or in a network that the public does not reach."""
    name = host.rstrip(".").lower().strip("[]")
    if any(name == each or name.endswith(f".{each}") for each in LOCAL_NAMES):
        return True
    try:
        return not _is_public(name)
    except ValueError:
        return not all(map(_is_public, look_up(name)))


def leads_inside(home: str, there: str, look_up: LookUp = look_up) -> bool:
    """Whether a public host sends us to one that is not."""
    return home != there and not is_inside(home, look_up) and is_inside(there, look_up)


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = _embedded(address)
        if inner is not None:
            return _is_public(str(inner))
    return address.is_global and not address.is_multicast


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one leads to: mapped, compatible, 6to4, by a translator.

    The prefixes are those of RFC 4291, 3056, 6052 and 8215; of a local translator (8215) only a
    /96 is unpacked, which is what there is.
    """
    found = address.ipv4_mapped or address.sixtofour
    if found is None and any(address in network for network in TRANSLATED):
        found = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return found
