"""Watches the branches and tags of a repository through git; asks no API and builds nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from pathlib import Path

from pydantic import SecretStr

from jobs import git_network
from jobs.errors import Transient
from jobs.git import repo_url
from jobs.git_names import full_name, is_pull
from jobs.git_network import Held
from scout.sources.base import RefsSeen, Watched

NOT_THERE = re.compile(r"couldn't find remote ref refs/pull/[0-9]+/head$")


def watches(engine: Watched) -> bool:
    """Engines that live in a repository."""
    return engine.repo is not None


def look(
    engine: Watched,
    *,
    network: Path,
    number: int,
    held: Held | None = None,
    tick: Callable[[], None] | None = None,
    token: SecretStr | None = None,
) -> RefsSeen:
    """What the branches and tags are now; their history is in the network when this returns.

    Of an engine that lives in pull requests, their heads alone.
    """
    url = repo_url(engine.repo or "")
    pulls = [full_name(branch) for branch in engine.branches if is_pull(branch)]
    if pulls:
        return _look_at_pulls(network, url, number, pulls, tick, token)
    found = git_network.update(
        network, url, number, held=held, is_fork=engine.is_fork, tick=tick, token=token
    )
    return RefsSeen(found.commits, found.refused)


def _look_at_pulls(
    network: Path,
    url: str,
    number: int,
    pulls: Sequence[str],
    tick: Callable[[], None] | None,
    token: SecretStr | None,
) -> RefsSeen:
    """Their heads; one that is not there is left out, as a branch that is not there is."""
    try:
        found = git_network.update_pulls(network, url, number, pulls, tick=tick, token=token)
        return RefsSeen(found.commits, found.refused)
    except Transient as error:
        if not NOT_THERE.search(error.message):
            raise
    if len(pulls) == 1:
        return RefsSeen({})
    seen = [_look_at_pulls(network, url, number, [each], tick, token) for each in pulls]
    return RefsSeen({ref: sha for each in seen for ref, sha in each.commits.items()})


def look_at_candidate(
    repo: str,
    *,
    network: Path,
    number: int,
    known: Set[str],
    tick: Callable[[], None],
    token: SecretStr | None = None,
) -> RefsSeen:
    """What a fork nobody builds shows now; where it stands at known commits, by its list alone."""
    url = repo_url(repo)
    found = git_network.update(
        network, url, number, known=known, candidate=True, tick=tick, token=token
    )
    return RefsSeen(found.commits, found.refused)


def default_branch(
    engine: Watched,
    *,
    tick: Callable[[], None] | None = None,
    token: SecretStr | None = None,
) -> str | None:
    """The branch that the repository itself calls its main one."""
    return git_network.default_branch(repo_url(engine.repo or ""), tick=tick, token=token)
