"""What four small sources say an engine can do."""

from __future__ import annotations

import time

import pytest

from scout.capability import (
    ARCHITECTURES,
    ARGUMENTS,
    SPECULATION,
    TYPES,
    Capability,
    read_capability,
)

BASE = {
    ARGUMENTS: """
        // add_opt({"--commented-out"})
        /* "--also-commented" */
        const std::vector<ggml_type> kv_cache_types = {
            GGML_TYPE_F16,
            GGML_TYPE_Q8_0, // "--not-a-flag"
        };
        add_opt(common_arg({"-ngl", "--n-gpu-layers"}, "N", "see http://x // no comment"));
        add_opt(common_arg({"--spec-type"}, "[none|ngram-cache|ngram-simple]", ""));
    """,
    TYPES: "GGML_TYPE_F16 = 1, // GGML_TYPE_OLD = 2,\n GGML_TYPE_Q8_0 = 8, GGML_TYPE_COUNT = 9,",
    ARCHITECTURES: '{ LLM_ARCH_LLAMA, "llama" }, { LLM_ARCH_UNKNOWN, "(unknown)" },',
}
FORK = {
    ARGUMENTS: BASE[ARGUMENTS]
    .replace("Q8_0,", "Q8_0, GGML_TYPE_TURBO3_0,")
    .replace("ngram-simple]", 'ngram-simple|dflash]", {"--tree-budget"}, "'),
    TYPES: BASE[TYPES].replace("GGML_TYPE_COUNT", "GGML_TYPE_TURBO3_0 = 42, GGML_TYPE_COUNT"),
    ARCHITECTURES: BASE[ARCHITECTURES] + '{ LLM_ARCH_DFLASH, "dflash-draft" }',
}


def test_names_are_read_from_each_source() -> None:
    """Flags in every spelling, types, cache types, speculation types, architectures."""
    found = read_capability(BASE)
    assert found.flags == {"-ngl", "--n-gpu-layers", "--spec-type"}
    assert found.cache_types == {"F16", "Q8_0"}
    assert found.ggml_types == {"F16", "Q8_0"}
    assert found.spec_types == {"ngram-cache", "ngram-simple"}
    assert found.archs == {"llama"}


def test_a_fork_adds_to_its_base() -> None:
    """Only what the base does not have; this tells which recipe to queue."""
    assert read_capability(FORK).beyond(read_capability(BASE)).added() == {
        "flags_added": ["--tree-budget"],
        "ggml_types_added": ["TURBO3_0"],
        "cache_types_added": ["TURBO3_0"],
        "spec_types_added": ["dflash"],
        "archs_added": ["dflash-draft"],
    }


def test_what_the_base_does_not_say_is_not_called_new() -> None:
    """Upstream builds its list of speculation types elsewhere: that is not "none"."""
    silent = {**BASE, ARGUMENTS: BASE[ARGUMENTS].replace('"[none|', 'all_types(), "[')}
    silent[ARGUMENTS] = silent[ARGUMENTS].replace("ngram-cache|ngram-simple]", "")
    base = read_capability(silent)
    assert base.spec_types == frozenset()
    assert read_capability(FORK).beyond(base).spec_types == frozenset()


UPSTREAM_NAMES = """
    const std::map<std::string, common_speculative_type> common_speculative_type_from_name_map = {
        {"none",       COMMON_SPECULATIVE_TYPE_NONE},
        {"draft-mtp",  COMMON_SPECULATIVE_TYPE_DRAFT_MTP}, // {"old", COMMON_SPECULATIVE_TYPE_OLD}
        {"ngram-mod",  COMMON_SPECULATIVE_TYPE_NGRAM_MOD}
    };
    other = {{"not", COMMON_SPECULATIVE_TYPE_THIS}};
"""


def test_speculation_types_come_from_their_own_source_where_the_option_lists_none() -> None:
    """As upstream keeps them; a list in the option itself is what is understood, and wins."""
    built = BASE[ARGUMENTS].replace('"[none|ngram-cache|ngram-simple]"', "all_types()")
    found = read_capability({ARGUMENTS: built, SPECULATION: UPSTREAM_NAMES})
    assert found.spec_types == {"draft-mtp", "ngram-mod"}
    listed = read_capability({**BASE, SPECULATION: UPSTREAM_NAMES})
    assert listed.spec_types == {"ngram-cache", "ngram-simple"}


def test_a_missing_source_says_nothing() -> None:
    """A code base of another shape has no known abilities, and is no error."""
    assert read_capability({}) == Capability()


@pytest.mark.parametrize(
    "piece",
    [
        "/*",
        '\\"',
        '"',
        "kv_cache_types = {",
        '"--spec-type" "',
        "{ LLM_ARCH_X, ",
        '"-a" ',
        "GGML_TYPE_A = ",
        '"--spec-type"a|b',
        "common_speculative_type_from_name_map = {",
        'common_speculative_type_from_name_map = { {"a", COMMON_SPECULATIVE_TYPE_',
    ],
)
def test_hostile_sources_cost_little(piece: str) -> None:
    """A megabyte of openings that never close is read in a moment."""
    text = piece * (2**20 // len(piece))
    start = time.process_time()
    read_capability({ARGUMENTS: text, TYPES: text, ARCHITECTURES: text, SPECULATION: text})
    assert time.process_time() - start < 3


def test_endless_lists_are_cut() -> None:
    """An event carries a bounded number of names."""
    flags = " ".join(f'"--flag-{n}"' for n in range(9000))
    found = read_capability({ARGUMENTS: flags})
    assert len(found.flags) == 5000
    assert len(found.added()["flags_added"]) == 200
