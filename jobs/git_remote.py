"""What a remote repository offers now, read from its list alone; refuses unreadable names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import SecretStr

from jobs.errors import Permanent
from jobs.git import checked_url
from jobs.git_memory import LIST_MEMORY_BYTES
from jobs.git_names import BRANCH, PULL, is_readable
from jobs.git_process import LIST_SECONDS, ask
from jobs.git_refs import FULL_SHA

PEELED = "^{}"
REFS_LIMIT = 20_000  # upstream has about 7,000 tags


@dataclass(frozen=True)
class Listing:
    """What a remote offers now by full ref name, as it is and with tags peeled; a whole list."""

    refs: Mapping[str, str]
    commits: Mapping[str, str]
    refused: int = 0


def remote_refs(
    url: str,
    *,
    in_one: bool = False,
    tick: Callable[[], None] | None = None,
    token: SecretStr | None = None,
) -> Listing:
    """Branches and tags as the remote says now, and how many names were refused.

    The list is whole or there is none; GitHub charges it to no quota. `in_one` asks for it in one
    request instead of two: pull requests are sent along, so of a repository that has few.
    """
    protocol = ["-c", "protocol.version=0"] if in_one else []
    words = [*protocol, "ls-remote", "--heads", "--tags", "--quiet", "--end-of-options"]
    refs: dict[str, str] = {}
    commits: dict[str, str] = {}
    refused = 0
    output = ask(
        [*words, checked_url(url)],
        url=url,
        seconds=LIST_SECONDS,
        memory_bytes=LIST_MEMORY_BYTES,
        exact=True,
        tick=tick,
        token=token,
    )
    for line in output.split("\n"):
        sha, _, ref = line.partition("\t")
        name = ref.removesuffix(PEELED)
        if not ref:
            continue
        if not FULL_SHA.fullmatch(sha) or name.startswith(PULL) or not is_readable(name):
            refused += name == ref
        elif name != ref:
            commits[name] = sha
        else:
            refs[name] = commits[name] = sha
        if len(refs) + refused > REFS_LIMIT:
            raise Permanent(
                f"{url} offers more than {REFS_LIMIT} branches and tags",
                advice="Nothing of it was taken. Look at the repository by hand.",
            )
    return Listing(refs, commits, refused)


def default_branch(
    url: str, *, tick: Callable[[], None] | None = None, token: SecretStr | None = None
) -> str | None:
    """The branch the remote's HEAD stands for, where it says so in a readable name."""
    words = ["ls-remote", "--symref", "--quiet", "--end-of-options", checked_url(url), "HEAD"]
    output = ask(words, url=url, seconds=LIST_SECONDS, exact=True, tick=tick, token=token)
    for line in output.split("\n"):
        found = re.fullmatch(r"ref: (refs/heads/[^\t]+)\tHEAD", line)
        if found and is_readable(found[1]):
            return found[1].removeprefix(BRANCH)
    return None
