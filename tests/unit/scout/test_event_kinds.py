"""The list of kinds is the type by which every event is made."""

from __future__ import annotations

from dataclasses import fields

import pytest

from scout.event_kinds import KINDS
from scout.github.base import Happening
from scout.news import News
from scout.ref_values import RefNews


@pytest.mark.parametrize("maker", [Happening, News, RefNews])
def test_news_is_made_by_the_type_that_the_list_is_read_from(maker: type) -> None:
    """The type check then refuses a kind that a person could not ask for."""
    assert {each.name: each.type for each in fields(maker)}["kind"] == "EventKind"
    assert "copy_found" in KINDS
