"""Flags from a help text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.dialect.helptext import read_help

HELP = Path(__file__).parents[2] / "data" / "llama_help.txt"


@pytest.fixture(scope="module")
def flags():
    return read_help(HELP.read_text())


def test_every_spelling_is_a_name(flags):
    """Short, long, positive and negative spellings are all read, also past column 40."""
    for name in ("-t", "--threads", "--no-mmap", "-ndio", "--no-direct-io", "--usage", "-ctxcp"):
        assert name in flags.names
    assert not [name for name in flags.names if not name.startswith("-") or " " in name]


def test_a_removed_spelling_is_no_name(flags):
    """Options that only say they are gone are removed, whatever their spelling."""
    assert flags.removed == {"--draft", "--draft-n", "--draft-max"}
    assert not flags.removed & flags.names
    assert flags.first_of("--draft-max", "--spec-draft-n-max") == "--spec-draft-n-max"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("--flash-attn", ("on", "off", "auto")),
        ("--cpu-strict", ("0", "1")),
        ("-sm", ("none", "layer", "row", "tensor")),
        ("--spec-type", ("none", "draft-simple", "draft-dflash")),
        ("-ctk", ("f32", "f16", "bf16", "q8_0", "q4_0", "turbo3", "turbo3_tcq")),
    ],
)
def test_each_way_to_list_values_is_read(flags, name, values):
    """Brackets, braces, angles, commas and `allowed values` over two lines."""
    assert flags.choices[name] == values


@pytest.mark.parametrize("name", ["--device", "--fit-target", "--ctx-size", "-a", "-ngl"])
def test_a_placeholder_is_no_list_of_values(flags, name):
    """An example such as MiB0,MiB1 restricts nothing."""
    assert name not in flags.choices


def test_a_piped_list_past_the_column_is_read():
    """A long enumeration beside the flag stands alone on its line."""
    text = "--spec-type [none|ngram-cache|suffix|copyspec|recycle|dflash]\n" + " " * 40 + "words\n"
    assert read_help(text).choices["--spec-type"][-1] == "dflash"


@given(st.text(alphabet="-a ,[]|<>{}\n:", max_size=200))
def test_no_help_text_raises(text):
    """Whatever a binary prints becomes flags."""
    assert all(name.startswith("-") for name in read_help(text).names)
