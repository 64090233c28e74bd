"""Whether a candidate's name still belongs to its number, asked of GitHub; it tells no push."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from jobs.db import reading
from jobs.errors import Transient
from jobs.git_network import BRANCH
from jobs.store import forks
from scout.candidate_values import Candidate
from scout.github import repositories
from scout.github.desk import Desk
from scout.github.governor import Tier
from scout.github.repositories import Wanted
from scout.graph import Graph

SURE_FOR = timedelta(minutes=15)
"""As long as a watched engine's name is believed after GitHub last named it."""
NOT_ASKED = "GitHub is not asked without FORKSCOUT_GITHUB_TOKEN"

Ask = Callable[[Candidate], str]
"""Why the name may be a stranger's by now, or nothing."""


def is_doubtful(one: Candidate, seen: Mapping[str, str], graph: Graph, *, now: datetime) -> bool:
    """Whether what moved may be the work of somebody else who took the name.

    So it is where what was there before is in none of the branches now, or where GitHub's lists
    have not named the repository for a while. A first look tells nothing and doubts nothing.
    """
    if not one.refs or seen == one.refs:
        return False
    if one.named_at is None or now - one.named_at > SURE_FOR:
        return True
    before = {sha for ref, sha in one.refs.items() if ref.startswith(BRANCH)}
    main = one.refs.get(f"{BRANCH}{one.default_branch}")
    known = {sha for sha in ({main} if main else before) if graph.knows(sha)}
    heads = [sha for ref, sha in seen.items() if ref.startswith(BRANCH) and graph.knows(sha)]
    reach = graph.reach(heads)
    return not any(graph.holds(reach, sha) for sha in known)


def confirm(one: Candidate, ask: Ask | None) -> None:
    """Raises `Transient` where it is not known that the name is still the candidate's."""
    doubt = ask(one) if ask else NOT_ASKED
    if doubt:
        raise Transient(
            f"whose {one.full_name} is now is not known, and nothing of it is told: {doubt}",
            advice="it is looked at again later",
        )


def by_number(opened: Callable[[], Desk]) -> Ask:
    """Asks GitHub's number for the name it has now, and keeps what it answers.

    The desk is opened at a question: a round in doubt of nobody needs none.
    """

    def ask(one: Candidate) -> str:
        desk = opened()
        wanted = Wanted(one.full_name, None, one.github_id, Tier.CANDIDATE)
        found = repositories.look(desk, wanted)
        if found.held is not None:
            return found.held.reason
        if found.failed is not None:
            return found.failed.reason
        with reading(desk.database) as session:
            row = forks.repository(session, one.github_id)
        if row is None or row.misses:
            return "its number shows nothing"
        if row.state in forks.AWAY:
            return f"it {forks.AWAY[row.state]}"
        if row.full_name.lower() != one.full_name.lower():
            return f"it is called {row.full_name} now"
        return ""

    return ask
