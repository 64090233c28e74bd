"""What a reply to a GraphQL question means, and what of it may become a row."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from scout.github.answers import Answer, Kind, Limit
from scout.github.base import Repo
from scout.github.governor import Tier
from scout.github.graphql import sort_reply
from scout.github.pushes import read_node, read_page

NOW = datetime(2026, 5, 18, 12, 0, tzinfo=UTC)
REPO = Repo(7, "ggml-org/llama.cpp", Tier.CHAIN)
NODE: dict[str, Any] = {
    "databaseId": 8,
    "nameWithOwner": "a/b",
    "pushedAt": "2026-05-18T11:00:00Z",
    "createdAt": "2026-05-17T11:00:00Z",
    "stargazerCount": 3,
    "forkCount": 1,
    "isArchived": False,
    "isDisabled": False,
    "description": "turbo",
    "defaultBranchRef": {"name": "main", "target": {"oid": "a" * 40}},
}


def reply(body: object, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return sort_reply(status, CaseInsensitiveDict(named), json.dumps(body), now=NOW)


def page(*nodes: object, more: object = False, cursor: object = "x") -> dict[str, Any]:
    info = {"hasNextPage": more, "endCursor": cursor}
    return {"repository": {"databaseId": 7, "forks": {"nodes": [*nodes], "pageInfo": info}}}


@pytest.mark.parametrize("status", [301, 304, 401, 403, 404, 409, 429, 451, 500, 502])
def test_no_status_says_anything_of_a_repository(status: int) -> None:
    """All share one address: its 404 or 451 is no fork's."""
    assert reply({"data": {}}, status).kind is Kind.NOT_KNOWN


def test_data_without_errors_is_a_page() -> None:
    """An empty list of errors is none."""
    assert reply({"data": {"a": 1}, "errors": []}).items == ({"a": 1},)
    for body in ({"data": None}, {"data": [1]}, [], None, 7, {"data": {}, "errors": "no"}):
        assert reply(body).kind is Kind.NOT_KNOWN


def test_limits_in_a_200_are_told_apart() -> None:
    """The bucket that is empty waits for its reset; the secondary limit has none to wait for."""
    empty = {"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]}
    reset = str(int(NOW.timestamp()) + 600)
    primary = reply(empty, X_RateLimit_Reset=reset)
    assert (primary.limit, primary.wait_seconds) == (Limit.PRIMARY, 601)
    slow = {"errors": [{"type": "RATE_LIMITED", "message": "exceeded a Secondary rate limit"}]}
    assert (reply(slow).limit, reply(slow).wait_seconds) == (Limit.SECONDARY, None)
    other = reply({"errors": [{"type": "NOT_FOUND\x1b[31m"}, {"type": "FORBIDDEN"}, 7, None]})
    assert (other.limit, other.reason) == (None, "GitHub answered with errors (FORBIDDEN)")


def test_the_quota_is_in_the_headers_or_in_the_body() -> None:
    """Headers first; sense is asked of either."""
    rate = {"limit": 5000, "remaining": 7, "resetAt": "2026-05-18T12:30:00Z", "cost": 1}
    told = reply({"data": {"rateLimit": rate}}).quota
    assert told is not None
    assert (told.remaining, told.reset_at, told.bucket) == (
        7,
        NOW + timedelta(minutes=30),
        "graphql",
    )
    assert reply({"data": {"rateLimit": {**rate, "resetAt": "soon"}}}).quota is None
    far = reply({"data": {"rateLimit": {**rate, "resetAt": "2099-01-01T00:00:00Z"}}}).quota
    assert far is not None
    assert far.reset_at - NOW < timedelta(hours=2)
    assert reply({"data": {"rateLimit": {**rate, "limit": 0}}}).quota is None
    both = reply(
        {"data": {"rateLimit": rate}},
        X_RateLimit_Limit="5000",
        X_RateLimit_Remaining="9",
        X_RateLimit_Reset=str(int(NOW.timestamp()) + 60),
    ).quota
    assert both is not None
    assert both.remaining == 9


def test_a_page_is_whole_or_none() -> None:
    """Of the repository that was asked for, with its list and a way on."""
    found = read_page(page(NODE, None, more=True), REPO)
    assert found is not None
    assert [each.full_name for each in found.forks] == ["a/b"]
    assert (found.after, found.oldest) == ("x", datetime(2026, 5, 18, 11, 0, tzinfo=UTC))
    empty = read_page(page(), REPO)
    assert empty is not None
    assert (empty.forks, empty.after, empty.oldest) == ((), None, None)
    for wrong in (page(NODE, more=None), page(NODE, more=True, cursor=None), {"repository": None}):
        assert read_page(wrong, REPO) is None
    assert read_page(page(NODE), Repo(9, "x/y", Tier.CHAIN)) is None


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted(NODE)), ANY))
def test_no_node_is_too_odd(change: dict[str, Any]) -> None:
    """Whatever its keys hold, it is left out or it fits a row."""
    facts = read_node({**NODE, **change})
    if facts is not None:
        assert 0 <= facts.github_id < 2**62
        assert facts.description.isprintable()
        assert facts.pushed_at is not None
        assert facts.pushed_at.tzinfo is not None


@given(ANY)
def test_no_body_is_too_odd(body: Any) -> None:
    """It is an answer, never an exception."""
    answer = sort_reply(200, {}, json.dumps(body), now=NOW)
    assert answer.kind in (Kind.PAGE, Kind.NOT_KNOWN)
    if answer.kind is Kind.PAGE:
        read_page(answer.items[0], REPO)
