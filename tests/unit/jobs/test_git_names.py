"""Names and refs that are refused before git is ever started."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs import git
from jobs.errors import UsageError

NOWHERE = Path("/nonexistent")
HOSTILE = [
    "ext::sh -c touch% /tmp/x",
    "file:///etc",
    "http://2130706433/",
    "http://[::ffff:a9fe:a9fe]/",
    "https://github.com@127.0.0.1/",
    "0.0.0.0",  # noqa: S104
    "64:ff9b::a9fe:a9fe",
    "https://github.com/a/b/../../c",
    "https://github.com/https://github.com/a/b",
    "--upload-pack=touch/x",
    "-a/b",
    "a/-b",
    "a/..",
    "a/.git",
    "a/b.git",
    "a/b/c",
    "a/b\n",
    "a/b?x",
    "a/ü",
    "a",
    "",
    "git@github.com:a/b",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_only_owner_and_name_are_an_address(name: str) -> None:
    """No address, option or odd spelling becomes a repository (cases C137, C139)."""
    with pytest.raises(UsageError, match="is not a repository"):
        git.repo_url(name)
    with pytest.raises(UsageError, match="is not a repository"):
        git.ls_remote(name)
    with pytest.raises(UsageError, match="is not a repository"):
        git.ls_remote(f"https://github.com/{name}")


def test_a_plain_name_becomes_an_https_address() -> None:
    """Dots, dashes and underscores of real forks are fine."""
    assert git.repo_url("Anbeeld/beellama.cpp") == "https://github.com/Anbeeld/beellama.cpp"
    assert git.repo_url("ik-x/a_b-c") == "https://github.com/ik-x/a_b-c"


@pytest.mark.parametrize("sha", ["main", "f" * 39, "F" * 40, "-" + "f" * 39, "f" * 40 + "\n"])
def test_a_checkout_takes_a_full_sha_only(sha: str) -> None:
    """Branch names, short shas and options never reach a checkout."""
    with pytest.raises(UsageError, match="full sha"):
        git.check_out(NOWHERE, sha, NOWHERE / "tree", [])
    with pytest.raises(UsageError, match="full sha"):
        git.commit_count(NOWHERE, sha)


@pytest.mark.parametrize(
    "ref",
    [
        *("--upload-pack=touch /tmp/x", "-x", "a b", "a\nb", "a\x00", "main~1", "main^{/x}"),
        *("@{-1}", "a..b", "a:b", "a*", "", "x" * 201, "main\n"),
    ],
)
def test_a_ref_is_a_name_not_an_expression(ref: str) -> None:
    """Options, ranges, searches and control characters are no refs (case C139)."""
    with pytest.raises(UsageError, match="cannot be a ref"):
        git.resolve(NOWHERE, ref)
