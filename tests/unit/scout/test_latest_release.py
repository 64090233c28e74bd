"""Which release is the latest: by version, never a draft, a pre-release or a tag that moves."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from scout.github.latest import is_finished, latest
from scout.github.releases import ASSETS_AWAITED, assets_awaited_until


def made(tag: str, day: int, **more: Any) -> dict[str, Any]:
    return {"tag_name": tag, "published_at": f"2026-05-{day:02d}T00:00:00Z", **more}


def test_a_moving_tag_and_a_newer_date_are_no_version() -> None:
    """`latest` moves, and v1.8.8 mends an old line: v2.8.3 is the latest."""
    assert latest([made("latest", 9), made("v1.8.8", 8), made("v2.8.3", 3)]) == "v2.8.3"


def test_neither_a_draft_nor_a_pre_release_is_the_latest() -> None:
    """A token that may push sees drafts; the policy is: finished releases only."""
    found = [made("v3.0", 9, draft=True), made("v2.9", 8, prerelease=True), made("v2.8", 1)]
    assert latest(found) == "v2.8"
    assert latest(found[:2]) == ""


@pytest.mark.parametrize(
    "tag",
    ["v2.9.0-rc1", "v2.9.0-beta.2", "2.9.0a1", "v2.9-preview", "v2.9.0-dev", "nightly",
     "nightly-2026-05-01", "continuous", "Latest", "main", "rolling/cuda"],
)  # fmt: skip
def test_what_a_tag_says_of_itself_counts(tag: str) -> None:
    """Many forget to mark a pre-release as one."""
    assert not is_finished(made(tag, 1))


@pytest.mark.parametrize(
    "tag",
    ["v2.9.0", "b9100", "2.9", "turbo-v1.2.3", "v1.2.3-cuda12", "v1.2.3-blackwell", "dflash"],
)
def test_finished_tags_are_finished(tag: str) -> None:
    """Words that only look alike do no harm."""
    assert is_finished(made(tag, 1))


def test_versions_are_compared_as_numbers() -> None:
    """And before numbers of builds that CI made, and those before bare names."""
    assert latest([made("v1.9.0", 9), made("v1.10.0", 1)]) == "v1.10.0"
    assert latest([made("b999", 9), made("b9100", 1)]) == "b9100"
    assert latest([made("b9100", 9), made("v0.1.2", 1)]) == "v0.1.2"
    assert latest([made("dflash", 2), made("mtp", 9)]) == "mtp"


def test_strangers_words_are_harmless() -> None:
    """No tag, a list as a tag, huge numbers, no date."""
    assert latest([{}, {"tag_name": ["v1"]}, made("v" + "9" * 400, 1)]) == f"v{'9' * 198}…"
    assert latest([{"tag_name": "v1.0"}]) == "v1.0"


@pytest.mark.parametrize(
    ("count", "ships_files", "waits"),
    [(0, True, True), (0, False, False), (3, True, False)],
    ids=["none yet", "never any", "there"],
)
def test_files_are_awaited_for_a_limited_time(count: int, ships_files: bool, waits: bool) -> None:
    """CI adds them later; after that, or where none ever came, the source is built (C66)."""
    at = datetime(2026, 5, 1, tzinfo=UTC)
    until = assets_awaited_until(at, count=count, ships_files=ships_files)
    assert until == (at + ASSETS_AWAITED if waits else None)
