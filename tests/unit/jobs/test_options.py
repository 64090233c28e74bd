"""Options out of a help text and out of the source that prints it, and how two sets differ."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.dialect.argument_source import ARGUMENTS, SPECULATION, TYPE_NAMES, read_source
from jobs.dialect.helptext import read_options
from jobs.dialect.options import Change, Option, difference, flags_of, from_stored, stored

HELP = Path(__file__).parents[2] / "data" / "llama_help.txt"
SOURCE = r"""
const std::vector<ggml_type> kv_cache_types = { GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_TURBO3_0 };

// add_opt(common_arg({"--in-a-comment"}, "nothing", [](common_params & params) {}));
common_params_context parser(common_params & params) {
    add_opt(common_arg(
        {"-h", "--help"},
        "show this text",
        [](common_params & params) { params.usage = true; }
    ));
    add_opt(common_arg(
        {"-c", "--ctx-size"}, "N",
        string_format("context in tokens (default: %d)", params.n_ctx),
        [](common_params & params, int value) {
            params.n_ctx = value;
        }
    ).set_env("LLAMA_ARG_CTX_SIZE"));
    add_opt(common_arg({ "-fa", "--flash-attn" }, "[on|off|auto]",
                       string_format("attention kernels (default: '%s')", name(params.fa)),
                       [](common_params & params, const std::string & value) {
                           throw std::runtime_error("set \"-fa\" better");
                       }).set_env("LLAMA_ARG_FLASH_ATTN"));
    add_opt(common_arg(
        {"--slots"},
        {"--no-slots"},
        "show the slots",
        [](common_params & params, bool value) { params.slots = value; }
    ).set_examples({LLAMA_EXAMPLE_SERVER}).set_env("LLAMA_ARG_ENDPOINT_SLOTS"));
    add_opt(common_arg(
        {"--lora-scaled"}, "FNAME", "SCALE",
        "an adapter and how strong it is",
        [](common_params & params, const std::string & a, const std::string & b) {}
    ).set_examples({LLAMA_EXAMPLE_COMMON, LLAMA_EXAMPLE_CLI}));
    add_opt(common_arg(
        {"-ctk", "--cache-type-k"}, "TYPE",
        string_format("type of the K cache\nallowed values: %s\n", get_all().c_str()),
        [](common_params & params, const std::string & value) {}
    ).set_env("LLAMA_ARG_CACHE_TYPE_K"));
    add_opt(common_arg(
        {"--temp"}, "N",
        "temperature",
        [](common_params & params, const std::string & value) {}
    ).set_sparam());
    add_opt(common_arg(
        {"--spec-type"}, common_speculative_all_types_str(),
        "kinds of speculation",
        [](common_params & params, const std::string & value) {}
    ).set_spec().set_env("LLAMA_ARG_SPEC_TYPE"));
    add_opt(common_arg(
        {"--draft-max"}, "N",
        "the argument has been removed. use another",
        [](common_params & params, int value) {}
    ).set_spec());
    add_opt(common_arg(
        {"--only-elsewhere"},
        "not the server's",
        [](common_params & params) {}
    ).set_examples({LLAMA_EXAMPLE_CLI}));
    add_opt(common_arg(
        {"--never-here"},
        "left out of the server",
        [](common_params & params) {}
    ).set_excludes({LLAMA_EXAMPLE_SERVER}));
    return ctx;
}

void presets(std::vector<common_arg> & args) {
    args.push_back(common_arg({"load-on-startup"}, "NAME", "", [](common_params &) {})
        .set_env("LLAMA_ARG_PRESET"));
}
"""
TYPES = """
    [GGML_TYPE_F16] = { .type_name = "f16", .blck_size = 1 },
    [GGML_TYPE_Q8_0] = {
        .type_name = "q8_0",
    },
    [GGML_TYPE_TURBO3_0] = { .type_name = "turbo3" },
"""
KINDS = """
static const std::map<std::string, enum common_speculative_type>
    common_speculative_type_from_name_map = {
    {"none", COMMON_SPECULATIVE_TYPE_NONE},
    {"draft-dflash", COMMON_SPECULATIVE_TYPE_DFLASH},
};
"""
EVERYTHING = {ARGUMENTS: SOURCE, TYPE_NAMES: TYPES, SPECULATION: KINDS}


@pytest.fixture(scope="module")
def told() -> dict[str, Option]:
    return {name: each for each in read_options(HELP.read_text()) for name in each.spellings}


@pytest.fixture(scope="module")
def read() -> dict[str, Option]:
    return {name: each for each in read_source(EVERYTHING) for name in each.spellings}


def test_a_help_tells_section_hint_variable_and_default(told):
    """Also where they stand lines below the option."""
    context = told["--ctx-size"]
    assert (context.spellings, context.hint) == (("-c", "--ctx-size"), "N")
    assert (context.section, context.env, context.default) == (
        "common",
        ("LLAMA_ARG_CTX_SIZE",),
        "0",
    )
    kinds = told["--spec-type"]
    assert (kinds.section, kinds.env) == ("speculative", ("LLAMA_ARG_SPEC_TYPE",))
    assert told["--slots"].section == "example-specific"
    assert told["-fa"].default == "auto"
    assert told["--draft-max"].removed


def test_the_source_names_what_the_help_would(read):
    """Both spellings of a switch; nothing that another program prints, or a comment names."""
    assert set(read) == {
        *("-h", "--help", "-c", "--ctx-size", "-fa", "--flash-attn", "--slots", "--no-slots"),
        *("--lora-scaled", "-ctk", "--cache-type-k", "--temp", "--spec-type", "--draft-max"),
    }
    assert read["-c"] == Option(
        ("-c", "--ctx-size"), hint="N", env=("LLAMA_ARG_CTX_SIZE",), section="common"
    )
    assert read["--lora-scaled"].hint == "FNAME SCALE"
    assert read["--help"].hint == ""
    assert read["--draft-max"].removed
    assert read["--temp"].section == "sampling"
    assert read["--slots"].section == "example-specific"
    assert read["--temp"].env == ()


def test_values_are_read_from_where_they_stand(read):
    """In the hint, in the list of cache types, in the names of kinds of speculation."""
    assert read["-fa"].values == ("on", "off", "auto")
    assert read["-ctk"].values == ("f16", "q8_0", "turbo3")
    assert read["--spec-type"].values == ("none", "draft-dflash")


def test_a_source_that_is_not_there_says_nothing():
    """Types whose names are unknown are not guessed."""
    read = {each.name: each for each in read_source({ARGUMENTS: SOURCE})}
    assert read["--cache-type-k"].values == ()
    assert read["--spec-type"].values == ()
    assert read_source({}) == ()


def test_what_is_different_is_told_by_spelling():
    """A removed spelling is not there; a side that does not say its values changes nothing."""
    before = [
        Option(("-a", "--alpha"), values=("1", "2"), env=("OLD",)),
        Option(("--beta",)),
        Option(("--gamma",)),
    ]
    after = [
        Option(("--alpha",), values=("2", "3"), env=("NEW",)),
        Option(("--beta",), values=("x",)),
        Option(("--gamma",), removed=True),
        Option(("--delta",)),
    ]
    found = difference(before, after)
    assert (found.added, found.gone) == (("--delta",), ("--gamma", "-a"))
    assert found.changed == (
        Change("--alpha", "values", "1, 2", "2, 3"),
        Change("--alpha", "env", "OLD", "NEW"),
    )
    assert difference(before, before).is_none


def test_a_spelling_that_lives_on_elsewhere_is_not_removed():
    """Forks keep an old name as an alias and the notice that it is gone."""
    flags = flags_of([Option(("--draft",), removed=True), Option(("--draft", "--n"))])
    assert flags.removed == frozenset()
    assert flags.first_of("--draft") == "--draft"


def test_what_is_stored_comes_back(told):
    """Through plain JSON."""
    options = tuple(told.values())
    assert from_stored(stored(options)) == options


@given(st.text(max_size=400))
def test_any_text_is_read_without_an_exception(text):
    """A stranger's source may hold anything."""
    read_source({ARGUMENTS: f'add_opt(common_arg({{"-x"}}, {text}', TYPE_NAMES: text})
    read_options(f"--x {text}")


@pytest.mark.parametrize(
    "bomb",
    [
        'add_opt(common_arg({"-x"}, "' + "a" * 500_000,
        "add_opt(common_arg(" * 30_000,
        'add_opt(common_arg({"-x"}' + ', "N"' * 100_000,
        'add_opt(common_arg({"-x"}, ' + "[" * 500_000,
        "/*" * 300_000,
        "{" * 500_000,
    ],
    ids=["string", "starts", "hints", "handlers", "comments", "braces"],
)
def test_a_source_made_to_be_slow_is_read_at_once(bomb):
    """No pattern reads a text twice; pytest's own limit would end a slow one."""
    assert len(read_source({ARGUMENTS: bomb, TYPE_NAMES: bomb, SPECULATION: bomb})) <= 1
