"""What branches, tags and heads of pull requests are called; refuses what nobody could read."""

from __future__ import annotations

import re

BRANCH, TAG, PULL = "refs/heads/", "refs/tags/", "refs/pull/"
NAME_LENGTH = 200
REPLACED = "\ufffd"
"""What stands where bytes were no text: several names would look like this one."""
_NAME = re.compile(r"refs/((heads|tags)/(?![-.])[^\s~^:?*\[\\]+|pull/[1-9][0-9]{0,8}/head)")
_PULL = re.compile(r"pull/[1-9][0-9]{0,8}")


def is_pull(branch: str) -> bool:
    """Whether a watched branch is the head of a pull request, written `pull/123`."""
    return _PULL.fullmatch(branch) is not None


def full_name(branch: str) -> str:
    """The ref a watched branch stands for; GitHub keeps the heads of pull requests apart."""
    return f"refs/{branch}/head" if is_pull(branch) else f"{BRANCH}{branch}"


def short_name(ref: str) -> str:
    """A branch as a person writes it."""
    if ref.startswith(PULL):
        return ref.removeprefix("refs/").removesuffix("/head")
    return ref.removeprefix(BRANCH)


def is_readable(ref: str) -> bool:
    """Whether a branch, tag or pull request's head can be shown, stored and typed."""
    return (
        len(ref) <= NAME_LENGTH
        and ref.isprintable()
        and REPLACED not in ref
        and _NAME.fullmatch(ref) is not None
        and not any(bad in ref for bad in ("..", "@{", "//", "/."))
        and not ref.endswith((".lock", "/", "."))
    )
