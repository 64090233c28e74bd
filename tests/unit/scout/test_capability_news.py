"""When a push changed what an engine can do, and what the event carries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from scout.capability import ARGUMENTS
from scout.capability_news import capability_news
from scout.graph import Graph
from scout.ref_values import Place, RefNews

PLACE = Place("fork", 7, 99)
BEFORE, AFTER, BASE = "b" * 40, "a" * 40, "0" * 40
PLAIN = 'x({"--mmap"});'
ABLE = 'x({"--mmap"}); x({"--tree"});'


class Sources:
    """A history of one file at three commits."""

    def __init__(self, **texts: str) -> None:
        self._texts = {
            ({"before": BEFORE, "after": AFTER, "base": BASE}[name], ARGUMENTS): text
            for name, text in texts.items()
        }
        self.read = 0

    def graph(self, numbers: Sequence[int]) -> Graph:
        return Graph(())

    def changed_paths(self, shas: Sequence[str]) -> Collection[str]:
        return ()

    def file_ids(self, wanted: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
        return self._texts

    def read_files(
        self, url: str, wanted: Iterable[tuple[str, str]]
    ) -> Mapping[tuple[str, str], str]:
        self.read += 1
        return self._texts


def push(*, forced: bool | None = False) -> RefNews:
    facts = {"forced": forced, "merge_base": BASE}
    return RefNews("fork_pushed", "k", "t", facts, revision=AFTER, replaces=BEFORE)


def told(sources: Sources, news: RefNews) -> RefNews | None:
    return capability_news(PLACE, news, sources, url="u")


def test_a_new_flag_is_told_with_its_facts() -> None:
    """Lists by kind, the commit, and a key of GitHub's number with the row's as its former one."""
    found = told(Sources(before=PLAIN, after=ABLE, base=PLAIN), push())
    assert found is not None
    assert found.kind == "fork_capability_changed"
    assert {"repo_id", "after", "flags_added", "ggml_types_added", "archs_added"} <= (
        found.facts.keys()
    )
    assert (found.facts["repo_id"], found.facts["after"]) == (99, AFTER)
    assert found.facts["flags_added"] == ["--tree"]
    assert found.key.startswith("gh:cap:99:")
    assert [key.split(":")[2] for key in found.former] == ["r7"]


def test_sources_that_did_not_change_are_not_read() -> None:
    """Equal content ids end it."""
    sources = Sources(before=PLAIN, after=PLAIN, base=PLAIN)
    assert told(sources, push()) is None
    assert sources.read == 0


def test_what_the_base_brought_is_no_ability_of_the_fork() -> None:
    """A sync takes upstream's flags along."""
    assert told(Sources(before=PLAIN, after=ABLE, base=ABLE), push()) is None


def test_a_push_whose_past_is_lost_claims_nothing() -> None:
    """Nobody knows what was there before."""
    assert told(Sources(before=PLAIN, after=ABLE, base=PLAIN), push(forced=None)) is None
