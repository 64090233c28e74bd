"""Names on the hub: what is one, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.errors import UsageError
from jobs.hub_names import HubPlace, read_place, set_sha256, shard_files

COMMIT = "c0ffee" + "0" * 34


def test_a_place_is_repository_file_and_revision() -> None:
    """Folders belong to the file; without a revision it is main."""
    assert read_place(f"a/b/sub/c.gguf@{COMMIT}") == HubPlace("a/b", "sub/c.gguf", COMMIT)
    assert read_place("hf:unsloth/Qwen3.6-27B-GGUF/Q.gguf") == HubPlace(
        "unsloth/Qwen3.6-27B-GGUF", "Q.gguf", "main"
    )
    assert read_place("a/b/c.gguf@refs/pr/3").revision == "refs/pr/3"


@pytest.mark.parametrize(
    "file", ["a b%20c#?.gguf", "x<script>.gguf", "ünî.gguf", "c@d.gguf", "..gguf", "BIG.GGUF"]
)
def test_a_file_may_be_called_as_the_hub_lists_it(file: str) -> None:
    """Spaces and signs of addresses or shells are part of a name, in any folder, at a revision."""
    assert read_place(f"a/b/{file}") == HubPlace("a/b", file, "main")
    assert read_place(f"hf:a/b/q 8/{file}@v1") == HubPlace("a/b", f"q 8/{file}", "v1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a/b",
        "a/b/c.bin",
        "a/b/.gguf",
        "a/b/../c.gguf",
        "a/../b/c.gguf",
        "../b/c.gguf",
        "a/b//c.gguf",
        "a/b/./c.gguf",
        "a/b/c\x00.gguf",
        "a/b/c\n.gguf",
        "a/b/c\x1b[2J.gguf",
        "a/b/c\\d.gguf",
        "a/b/-c.gguf",
        "a/b/\u202ec.gguf",
        "-a/b/c.gguf",
        "a/b/c.gguf@",
        "a/b/c.gguf@../main",
        "a/b/c.gguf@-x",
        "a/b/c.gguf@x y",
        "a/b/c.gguf@x//y",
        f"a/b/{'c' * 400}.gguf",
        f"a/b/{'c/' * 200}c.gguf",
        f"{'a' * 200}/b/c.gguf",
        f"a/b/c.gguf@{'m' * 200}",
        "a/b/c-00000-of-00002.gguf",
        "a/b/c-00003-of-00002.gguf",
        "a/b/c-00001-of-99999.gguf",
        "https://host/a/b/c.gguf",
    ],
)
def test_what_could_mean_something_else_is_refused(text: str) -> None:
    """The message shows no more than the start of it, and how to write it."""
    with pytest.raises(UsageError) as caught:
        read_place(text)
    assert "OWNER/REPOSITORY/FILE.gguf" in caught.value.advice
    assert len(caught.value.message) < 700


@given(st.text(max_size=60))
def test_no_text_raises_anything_else(text: str) -> None:
    """A place is right or a usage error; a right one holds no step upwards."""
    try:
        place = read_place(f"a/b/{text}.gguf")
    except UsageError:
        return
    assert ".." not in place.file.split("/")
    assert place.file.isprintable()


def test_a_set_has_all_its_files_in_order() -> None:
    """Whichever of them is named; a file that is no shard stands alone."""
    names = ("x-00001-of-00003.gguf", "x-00002-of-00003.gguf", "x-00003-of-00003.gguf")
    assert shard_files(names[1]) == names
    assert shard_files("x-1-of-3.gguf") == ("x-1-of-3.gguf",)


def test_a_set_is_known_by_its_digests_in_order() -> None:
    """Another order is another set, and no set has the digest of its only file."""
    one, two = "a" * 64, "b" * 64
    assert set_sha256([one, two]) != set_sha256([two, one])
    assert set_sha256([one]) != one
