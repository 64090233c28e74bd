"""File names of strangers stay inside their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.errors import UsageError
from jobs.trees import inside

HOSTILE = [
    *("../../x.gguf", "/etc/x", "..\\x", "\\\\host\\s", "a/./b/../../../x", "a/../b", "a//b"),
    *("", ".", "..", "a/", "C:x", "a\nb", "a\x00b", "x" * 256),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_climb_out_are_refused(name: str) -> None:
    """Parents, absolute names, drive letters, shares and control characters (case C141)."""
    with pytest.raises(UsageError, match="is not a file name"):
        inside(Path("/nonexistent/models"), name)


def test_a_plain_name_stays_below_its_folder() -> None:
    """Subfolders, spaces and letters of any script are fine."""
    folder = Path("/nonexistent/models")
    assert inside(folder, "Q4 K/модель.gguf") == folder / "Q4 K/модель.gguf"
