"""What may and may not be read in public text (case C145)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from web.redact import redact, visible


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("/home/alice/build/x.cu:12", "<build>/x.cu:12"),
        ("at /home/alice/a/b/x.cu:12: error", "at <build>/x.cu:12: error"),
        ("-I/home/alice/include -O2", "-I<build>/include -O2"),
        ("-L/srv/alice/lib", "-L<build>/lib"),
        ("prefix=/opt/alice/out", "prefix=<build>/out"),
        ('"/srv/secret-project/x.h"', '"<build>/x.h"'),
        ("(/Users/alice/x.m)", "(<build>/x.m)"),
        ("path:/a/b:/c/d", "path:<build>/b:<build>/d"),
        (r"C:\Users\alice\x.cu(3)", "<build>/x.cu(3)"),
        ("~/models/x.gguf", "<build>/x.gguf"),
        ("~alice/models/x.gguf", "<build>/x.gguf"),
        ("unix:///run/engine/e.sock", "unix://<build>/e.sock"),
        ("file:///home/alice/x", "file://<build>/x"),
    ],
)
def test_a_path_of_the_machine_keeps_only_its_last_part(text: str, public: str) -> None:
    """Folders and user names vanish, the file and line stay."""
    assert redact(text) == public


@pytest.mark.parametrize(
    "text",
    [
        "/usr/include/c++/12/vector:54",
        "src/ggml/x.cu:12",
        "../ggml/src/x.cu",
        "POST /v1/chat/completions 200",
        "GET /props",
        "https://github.com/owner/name/pull/3",
        "EOT token        = 106 '<end_of_turn>'",
        "n_tokens = 128, token: 12",
        "66.9 t/s [65.1-68.0]",
        "// a comment/with a slash",
        "root directory of the server",
        "<artifact>/llama-server",
        "package@1.2.3",
        "owner/repo/model@final.Q4_K_M.gguf",
        "drafter@epoch.safetensors",
    ],
)
def test_what_tells_nothing_about_the_machine_stays(text: str) -> None:
    """System headers, relative paths, HTTP paths and numbers read as they were written."""
    assert redact(text, names=["root", "server"]) == text


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_" + "a1" * 18,
        "github_pat_" + "A1b2" * 8,
        "hf_" + "aB3" * 10,
        "AKIA" + "ABCD" * 4,
        "Bearer abcdef0123456789",
        "HF_TOKEN=abcdef0123456789",
        "password: hunter2hunter2",
        'api_key = "abcdef0123456789"',
        "https://alice:pa55word@example.test/x",
        "https://example.test/x?token=abc",
        "alice@example.test",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----",
    ],
)
def test_a_secret_is_never_readable(secret: str) -> None:
    """Tokens, passwords, addresses and keys leave no trace of their value."""
    public = redact(f"before {secret} after")
    assert public.startswith("before ")
    for part in ("a1a1", "aB3aB3", "A1b2", "ABCDABCD", "0123456789", "hunter2", "pa55", "alice@"):
        assert part not in public
    assert "token=abc" not in public
    assert "\nabc\n" not in public


def test_known_folders_keep_their_tail() -> None:
    """Below a folder of ours the rest of the path is told, the longest folder wins."""
    roots = {"/srv/scout/var": "<home>", "/srv/scout/var/artifacts": "<artifacts>"}
    assert redact("/srv/scout/var/artifacts/ab12/bin", roots=roots) == "<artifacts>/ab12/bin"
    assert redact("/srv/scout/variable/x", roots=roots) == "<build>/x"
    assert redact("in /srv/scout/var: full", roots=roots) == "in <home>: full"


def test_names_of_the_machine_are_replaced_as_whole_words() -> None:
    """The user and the host are hidden, words that merely contain them are not."""
    assert redact("alice on box7, malice", names=["alice", "box7"]) == "<name> on <name>, malice"


def test_colours_controls_and_reordering_marks_vanish() -> None:
    """A log shows its letters, not what they would do to a terminal or to reading order."""
    assert visible("\x1b[31mred\x1b[0m a\u202eb\x07\n\tc") == "red ab\n\tc"


@given(st.text(alphabet="/home.alice<>:\\@~=- \n'\"x1", max_size=200))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    """What is public already stays as it is."""
    once = redact(text)
    assert redact(once) == once


@pytest.mark.parametrize("unit", ["a.", "a@", "/x", "a+", "token", "<a>", "~/", "-I", "e:"])
def test_a_long_hostile_line_takes_no_long_time(unit: str) -> None:
    """64 KiB of one repeated piece are done at once (the pattern does not backtrack)."""
    assert redact(unit * (65_536 // len(unit)))
