"""Parents of a watch list: those that are watched already count, and wrong ones never hide."""

from __future__ import annotations

import pytest

from jobs.errors import UsageError
from jobs.toml_lines import Lines
from scout.known import Known
from scout.reading import MOST_TOLD, parse

BEE = '[[engine]]\nname = "bee"\nfamily = "llama.cpp"\nrepo = "b/e"\nparent = "buun"\n'


def refused(text: str, **watched: str | None) -> str:
    with pytest.raises(UsageError) as caught:
        parse(text, "list.toml", Known(parents=watched))
    return f"{caught.value.message} {caught.value.advice}"


def test_a_parent_that_is_watched_already_counts() -> None:
    """Alone the list lacks it; beside what is watched it does not."""
    assert "unknown engine 'buun'" in refused(BEE)
    assert "did you mean 'buum'?" in refused(BEE, buum=None)
    assert parse(BEE, "list.toml", Known(parents={"buun": None})).engines[0].parent == "buun"


def test_a_circle_through_what_is_watched_is_one() -> None:
    """The list and the home together make a ring."""
    assert "its own ancestor" in refused(BEE, buun="bee")


def test_a_wrong_parent_is_told_with_the_other_mistakes() -> None:
    """Also where another entry, or another key, is wrong; a name of a wrong entry is a name."""
    wrong = '[[engine]]\nname = "upstream"\nfamly = "x"\nrepo = "u/p"\n'
    text = f'{wrong}{BEE}[[engine]]\nname = "c"\nfamily = "llama.cpp"\nrepo = "c/c"\n'
    said = refused(f'{text}parent = "upstream"\n')
    assert "unknown key 'famly'" in said
    assert "line 9: unknown engine 'buun'" in said
    assert "unknown engine 'upstream'" not in said


def test_only_so_many_lines_are_looked_for() -> None:
    """Each costs a reading of the text; the others are counted."""
    said = refused("\n".join(f'"k{number}" = 1' for number in range(3000)))
    assert "line 1: unknown key 'k0' (and 2999 more)" in said
    assert said.count("\n") == MOST_TOLD - 1


def test_no_cut_of_a_text_is_parsed_twice() -> None:
    """Neighbours share nearly all of the search for their lines."""
    lines = Lines("\n".join(f"k{number} = 1" for number in range(1000)))
    assert [lines.of((f"k{number}",)) for number in range(20)] == list(range(1, 21))
    assert len(lines.parsed) < 60
