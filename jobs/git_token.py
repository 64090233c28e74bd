"""Shows git our token for GitHub: in memory that only git opens, never in an argument, an address,
the environment or a file. It refuses every other host, and any redirect while the token is shown.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pydantic import SecretStr

GITHUB = "https://github.com/"
USER = "x-access-token"


@dataclass(frozen=True)
class Shown:
    """Words for git's command line, and the file descriptors it must inherit for them."""

    words: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()


def belongs_to(token: SecretStr | None, url: str | None) -> bool:
    """Whether there is a token and this address is one it may be shown to."""
    return token is not None and bool(_plain(token)) and (url or "").startswith(GITHUB)


@contextmanager
def shown(token: SecretStr | None) -> Iterator[Shown]:
    """Settings with the token for as long as git runs; without a token there are none.

    GitHub asks nobody for a name before it gives public repositories, so git would keep a token to
    itself: the header goes with the first request. Git applies it to the address that it reaches
    for in the end, so that an operator's mirror is shown nothing.
    """
    if token is None:
        yield Shown()
        return
    memory = os.memfd_create("forkscout")
    try:
        os.write(memory, _settings(_plain(token)).encode())
        yield Shown(("-c", f"include.path=/proc/self/fd/{memory}"), (memory,))
    finally:
        os.close(memory)


def _settings(token: str) -> str:
    pair = base64.b64encode(f"{USER}:{token}".encode()).decode()
    # A redirect may lead to another host, and git would take the header along.
    return (
        f'[http "{GITHUB}"]\n'
        f"\textraHeader = Authorization: Basic {pair}\n"
        "\tfollowRedirects = false\n"
    )


def _plain(token: SecretStr) -> str:
    return token.get_secret_value().strip()
