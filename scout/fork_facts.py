"""What a fork has of its own, beyond upstream and beyond its parent; decides from a graph alone.

Which branch stands for a fork: its default branch, unless that has nothing of its own and another
one has; then the one that was worked on last.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from jobs.git_history import CommitFacts
from jobs.git_network import BRANCH, TAG
from scout.graph import PULL_REQUEST, Graph, Triple, patches, triple, triples
from scout.push_news import HOT_PATHS
from scout.ranking import GitFacts
from scout.ref_news import AUTO_BUILD
from scout.ref_values import Upstream

LOOKED_INTO = 200
"""So many of the newest own patches are looked into; the score counts far fewer."""
SUBJECTS, SUBJECT_LENGTH = 20, 120
CAPABILITIES = 50
BRANCHES_LOOKED_AT = 100
PAPERS = re.compile(
    r"(docs?|media|ci|\.(github|circleci|gitlab|devops))/"
    r"|([^/]*/)*((README|LICEN[CS]E|AUTHORS|\.git)[^/]*|[^/]*\.(md|rst)|\.[^/]*ci\.ya?ml)$",
    re.IGNORECASE,
)
"""Documents and what builds the fork elsewhere: nothing of it changes a number."""
_BOT = re.compile(r".*\[bot\]|dependabot.*|github[- ]actions?.*|pull(\[bot\])?", re.IGNORECASE)


@dataclass(frozen=True)
class Elder:
    """A repository that was there before: its head and what any of its refs has of its own."""

    name: str
    repo: str
    head: str | None
    shas: frozenset[str] = frozenset()
    patches: frozenset[Triple] = frozenset()
    tags: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Parentage:
    """The parent GitHub names, None where it is not known here, and the others of the chain."""

    parent: Elder | None = None
    named: str = ""
    others: Sequence[Elder] = ()


@dataclass(frozen=True)
class Own:
    """A fork's own work on the branch that stands for it, newest first.

    `elder` is what it was held against beside upstream; None where the parent is not known here.
    """

    branch: str
    head: str
    beyond_upstream: Sequence[CommitFacts]
    beyond_parent: Sequence[CommitFacts] | None
    elder: Elder | None
    named: str
    behind: int | None
    merge_base: str | None
    human_tag: str

    @property
    def work(self) -> Sequence[CommitFacts]:
        """What is nobody else's, as far as it is known here."""
        return self.beyond_upstream if self.beyond_parent is None else self.beyond_parent


def elder(
    graph: Graph, name: str, repo: str, refs: Mapping[str, str], head: str | None, base: Upstream
) -> Elder:
    """What a parent, or another fork of the chain, has beyond upstream on any of its refs."""
    if head == base.head:
        return Elder(name, repo, head, tags=_tags(refs))
    own = graph.beyond(refs.values(), base.everything)
    shas = frozenset(commit.sha for commit in own)
    return Elder(name, repo, head, shas, triples(patches(own)), _tags(refs))


def own_work(
    graph: Graph,
    refs: Mapping[str, str],
    *,
    default_branch: str | None,
    upstream: Upstream,
    parentage: Parentage,
    landed: Collection[tuple[str, str]] = (),
) -> Own | None:
    """What is the fork's own; None where none of its branches is in the graph.

    A patch whose pull request upstream has merged (`landed`) is upstream's.
    """
    heads = {ref: sha for ref, sha in refs.items() if ref.startswith(BRANCH) and graph.knows(sha)}
    if not heads:
        return None
    order = sorted(heads, key=lambda ref: (-graph.commit(heads[ref]).committed_at, ref))
    default = f"{BRANCH}{default_branch}"
    if default in heads:
        order = [default, *(ref for ref in order if ref != default)]
    chosen, found = order[0], _work(graph, heads[order[0]], upstream, parentage, landed)
    for ref in order[1:BRANCHES_LOOKED_AT] if not found.rest else ():
        other = _work(graph, heads[ref], upstream, parentage, landed)
        if other.rest:
            chosen, found = ref, other
            break
    distance = graph.distance(heads[chosen], upstream.released, sum(upstream.released))
    return Own(
        chosen.removeprefix(BRANCH),
        heads[chosen],
        found.mine,
        found.beyond,
        found.by,
        parentage.named,
        distance.behind,
        distance.merge_base,
        _human_tag(graph, refs, upstream, (found.by, parentage.parent)),
    )


def git_facts(
    own: Own, files: Mapping[str, Collection[str]] | None, capabilities: Sequence[str] = ()
) -> GitFacts:
    """The facts the ranking takes, given the paths that each of the newest own patches touches;
    None where they are too many."""
    work = own.work
    people = {commit.author for commit in work if not is_bot(commit.author)}
    looked = work[:LOOKED_INTO]
    touched = [(files or {}).get(commit.sha, ()) for commit in looked]
    hot = sum(any(path.startswith(HOT_PATHS) for path in paths) for paths in touched)
    return GitFacts(
        own_vs_upstream=len(own.beyond_upstream),
        own_vs_parent=None if own.beyond_parent is None else len(own.beyond_parent),
        hot_patches=hot,
        own_authors=len(people),
        capabilities=tuple(capabilities[:CAPABILITIES]),
        subjects=tuple(commit.subject[:SUBJECT_LENGTH] for commit in work[:SUBJECTS]),
        behind=own.behind,
        unrelated=own.merge_base is None,
        only_syncs=not work,
        only_bots=bool(work) and not people,
        only_papers=any(touched) and all(is_paper(path) for paths in touched for path in paths),
        only_empty=bool(work) and files is not None and not any(touched),
        branch=own.branch,
        head=own.head,
        parent=own.elder.name if own.elder else own.named,
        human_tag=own.human_tag,
    )


def landed_in(graph: Graph, upstream: Upstream) -> frozenset[tuple[str, str]]:
    """Author and title of what upstream took as pull requests."""
    taken = graph.beyond([upstream.head], graph.reach([]))
    return frozenset(
        (commit.author, PULL_REQUEST.sub("", commit.subject).strip())
        for commit in taken
        if PULL_REQUEST.search(commit.subject)
    )


def is_bot(author: str) -> bool:
    """Whether a program wrote it, as far as its name says."""
    return _BOT.fullmatch(author) is not None


def is_paper(path: str) -> bool:
    """Whether a path holds documents, or how the fork is built elsewhere."""
    return PAPERS.match(path) is not None


@dataclass(frozen=True)
class _Work:
    """Own patches of one head: beyond upstream, and beyond what it is held against."""

    mine: Sequence[CommitFacts]
    beyond: Sequence[CommitFacts] | None
    by: Elder | None

    @property
    def rest(self) -> Sequence[CommitFacts]:
        return self.mine if self.beyond is None else self.beyond


def _work(
    graph: Graph,
    head: str,
    upstream: Upstream,
    parentage: Parentage,
    landed: Collection[tuple[str, str]],
) -> _Work:
    commits = graph.beyond([head], upstream.everything)
    mine = _once(
        commit for commit in patches(commits) if (commit.author, commit.subject) not in landed
    )
    by = _held_against(parentage, frozenset(commit.sha for commit in commits))
    beyond = None if by is None else [each for each in mine if triple(each) not in by.patches]
    return _Work(mine, beyond, by)


def _held_against(parentage: Parentage, shas: frozenset[str]) -> Elder | None:
    """GitHub's parent, or the fork with which more commits are shared: links are lost easily."""
    named = parentage.parent
    best, most = named, len(named.shas & shas) if named else 0
    for other in parentage.others:
        shared = len(other.shas & shas)
        if shared > most:
            best, most = other, shared
    return best


def _human_tag(
    graph: Graph, refs: Mapping[str, str], upstream: Upstream, elders: Iterable[Elder | None]
) -> str:
    """The newest tag that a person made here: not a build's, not upstream's, not an elder's."""
    theirs = {name for each in elders if each and each.tags for name in each.tags}
    found = [
        (graph.commit(sha).committed_at, name)
        for name, sha in _tags(refs).items()
        if graph.knows(sha)
        and name not in theirs
        and not AUTO_BUILD.fullmatch(name)
        and not graph.holds(upstream.everything, sha)
    ]
    return max(found)[1] if found else ""


def _tags(refs: Mapping[str, str]) -> dict[str, str]:
    return {ref.removeprefix(TAG): sha for ref, sha in refs.items() if ref.startswith(TAG)}


def _once(commits: Iterable[CommitFacts]) -> list[CommitFacts]:
    """Each patch once, the newest of its copies."""
    found: dict[Triple, CommitFacts] = {}
    for commit in commits:
        found.setdefault(triple(commit), commit)
    return sorted(found.values(), key=lambda each: -each.committed_at)
