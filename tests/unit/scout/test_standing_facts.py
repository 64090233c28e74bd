"""What is kept of an engine's abilities, and when a chain counts as unmoved."""

from __future__ import annotations

from dataclasses import replace

from scout.capability import Capability
from scout.kinship import Kin
from scout.standings import capability_facts, chain_digest

UPSTREAM = Capability(frozenset({"--ctx"}), frozenset({"F16"}), frozenset({"F16"}))
TURBO = replace(
    UPSTREAM, cache_types=frozenset({"F16", "TURBO3_0"}), spec_types=frozenset({"suffix"})
)
BUUN = replace(TURBO, flags=frozenset({"--ctx", "--tree"}), spec_types=frozenset({"dflash"}))
KIN = Kin("buun", 1, "buun/engine", 3, branches=("master",), refs={"refs/heads/master": "a" * 40})


def test_abilities_are_told_against_upstream_and_against_the_parent() -> None:
    """By kind, counted and named; what the parent has already is not new beside it."""
    found = capability_facts(BUUN, UPSTREAM, TURBO)
    assert found["understood"]["flags"] == 2
    assert found["beyond_upstream"]["cache_types"] == {"count": 1, "names": ["TURBO3_0"]}
    assert found["beyond_parent"]["cache_types"] == {"count": 0, "names": []}
    assert found["beyond_parent"]["spec_types"] == {"count": 1, "names": ["dflash"]}


def test_a_base_that_does_not_say_is_no_base_without_the_ability() -> None:
    """Upstream lists no speculation types in this state: what is new is not known, not all."""
    assert capability_facts(BUUN, UPSTREAM, TURBO)["beyond_upstream"]["spec_types"] is None
    assert capability_facts(UPSTREAM, None, None)["beyond_upstream"] is None


def test_names_are_bounded_and_their_count_is_true() -> None:
    """A fork with ten thousand invented flags fills no page."""
    many = Capability(frozenset(f"--f{n}" for n in range(1000)))
    flags = capability_facts(many, UPSTREAM, None)["beyond_upstream"]["flags"]
    assert (flags["count"], len(flags["names"])) == (1000, 200)


def test_a_chain_moves_with_a_head_a_branch_a_parent_or_a_member() -> None:
    """And with nothing else: tags and other branches come and go."""
    before = chain_digest([KIN])
    assert chain_digest([replace(KIN, refs={**KIN.refs, "refs/tags/v1": "b" * 40})]) == before
    moved = [
        replace(KIN, refs={"refs/heads/master": "b" * 40}),
        replace(KIN, branches=("main",)),
        replace(KIN, parent="turbo"),
    ]
    assert before not in {chain_digest([each]) for each in moved}
    assert chain_digest([KIN, replace(KIN, name="twin", repository=4)]) != before
