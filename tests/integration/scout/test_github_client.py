"""One page of GitHub through github3.py: what each reply means, and the traps on the way."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from support.github import API, GitHub, ToLoopback

from jobs.errors import UsageError
from scout.github.answers import Kind, Limit
from scout.github.client import API_VERSION, Client

UPSTREAM = 612354784
FORKS = f"repositories/{UPSTREAM}/forks"
HUNDRED = {"sort": "newest", "per_page": "100"}


@pytest.fixture
def github() -> Iterator[GitHub]:
    with GitHub() as server:
        server.add(UPSTREAM, "ggml-org/llama.cpp")
        yield server


def ask_as(github: GitHub, token: str = "t0ken", **limits: float) -> Client:
    read = limits.pop("read_seconds", 2.0)
    return Client(token=token, adapter=ToLoopback(github.url, **limits), read_seconds=read)


def fill(github: GitHub, count: int) -> None:
    for number in range(count):
        stamp = f"2026-03-01T{number // 60:02d}:{number % 60:02d}:00Z"
        github.add(1000 + number, f"dev{number}/llama.cpp", parent=UPSTREAM, created_at=stamp)


def test_pages_are_asked_one_by_one(github: GitHub) -> None:
    """150 forks are two requests of 100, not five of 30, and the link names the numeric id."""
    fill(github, 150)
    client = ask_as(github)
    first = client.ask(FORKS, HUNDRED)
    assert (first.kind, len(first.items)) == (Kind.PAGE, 100)
    assert first.next_url is not None
    assert "/repositories/" in first.next_url
    second = client.ask(first.next_url)
    assert len(second.items) == 50
    assert second.next_url is None
    assert [each.path.count("per_page=100") for each in github.asked] == [1, 1]


def test_an_etag_is_sent_for_its_own_page_only(github: GitHub) -> None:
    """github3 would send page 1's ETag with page 2 and take its 304 for "unchanged"."""
    fill(github, 150)
    client = ask_as(github)
    first = client.ask(FORKS, HUNDRED)
    github.asked.clear()
    again = client.ask(FORKS, HUNDRED, etag=first.etag)
    assert again.kind is Kind.UNCHANGED
    assert again.items == ()
    assert client.ask(first.next_url or "").kind is Kind.PAGE
    assert [bool(each.if_none_match) for each in github.asked] == [True, False]
    assert [each.charged for each in github.asked] == [False, True]


def test_a_changed_third_page_is_seen_behind_an_unchanged_first(github: GitHub) -> None:
    """The ETag of page 1 says nothing of page 3."""
    fill(github, 250)
    client = ask_as(github)
    pages = [client.ask(FORKS, HUNDRED)]
    while pages[-1].next_url:
        pages.append(client.ask(pages[-1].next_url))
    github.repos[1000]["stargazers_count"] = 9
    assert client.ask(FORKS, HUNDRED, etag=pages[0].etag).kind is Kind.UNCHANGED
    third = client.ask(pages[1].next_url or "", etag=pages[2].etag)
    assert third.kind is Kind.PAGE
    assert third.items[-1]["stargazers_count"] == 9


def test_parameters_of_the_caller_stay_as_they_are(github: GitHub) -> None:
    """github3 adds `per_page` to the mapping it is given."""
    params = {"sort": "newest"}
    ask_as(github).ask(FORKS, params)
    assert params == {"sort": "newest"}


def test_an_odd_item_does_not_lose_the_page(github: GitHub) -> None:
    """A null owner, a missing key and a null item leave the others readable."""
    fill(github, 3)

    def spoil(page: list[Any]) -> list[Any]:
        page[0] = {**page[0], "owner": None}
        page[1] = {k: v for k, v in page[1].items() if k != "forks_url"}
        return [*page, None]

    github.fail("/forks", change=spoil)
    assert len(ask_as(github).ask(FORKS, HUNDRED).items) == 3


def test_the_version_is_pinned_and_the_token_only_in_its_header(github: GitHub) -> None:
    """The token is in no address and in no log line; without one, none is sent."""
    client = ask_as(github, "s3cret-token")
    client.ask("repos/ggml-org/llama.cpp", many=False)
    assert github.asked[0].authorization == "token s3cret-token"
    assert "s3cret" not in github.asked[0].path
    assert API_VERSION == "2022-11-28"
    assert github.asked[0].version == API_VERSION
    ask_as(github, "").ask("repos/ggml-org/llama.cpp", many=False)
    assert github.asked[1].authorization is None


def test_the_token_is_in_no_log_line(github: GitHub, caplog: pytest.LogCaptureFixture) -> None:
    """At the most talkative level of every library."""
    caplog.set_level(logging.DEBUG)
    client = ask_as(github, "s3cret-token")
    client.ask("repos/ggml-org/llama.cpp", many=False)
    github.fail("/forks", status=502, body=b"<html>")
    client.ask(FORKS)
    assert client.query("{ rateLimit { cost } }", {}).kind is Kind.NOT_KNOWN
    assert caplog.text
    assert "s3cret" not in caplog.text
    assert "s3cr" not in repr(client)


def test_a_renamed_repository_is_followed_and_said(github: GitHub) -> None:
    """301 leads to the numeric address; the caller compares id and name."""
    github.rename(UPSTREAM, "ggml-org/renamed")
    answer = ask_as(github).ask("repos/ggml-org/llama.cpp", many=False)
    assert answer.kind is Kind.PAGE
    assert answer.moved
    assert answer.items[0]["id"] == UPSTREAM
    assert answer.items[0]["full_name"] == "ggml-org/renamed"
    assert [each.status for each in github.asked] == [301, 200]


REPLIES = [
    ("404", {"status": 404}, Kind.MISSING),
    ("451", {"status": 451}, Kind.BLOCKED),
    ("403 blocked", {"status": 403, "body": b'{"message":"Repository access blocked"}'},
     Kind.BLOCKED),
    ("409 empty", {"status": 409}, Kind.EMPTY),
    ("401", {"status": 401}, Kind.NOT_KNOWN),
    ("403", {"status": 403}, Kind.NOT_KNOWN),
    ("410", {"status": 410}, Kind.NOT_KNOWN),
    ("422", {"status": 422}, Kind.NOT_KNOWN),
    ("429 with Retry-After", {"status": 429, "headers": {"Retry-After": "60"}}, Kind.NOT_KNOWN),
    ("503 with Retry-After", {"status": 503, "headers": {"Retry-After": "60"}}, Kind.NOT_KNOWN),
    ("500", {"status": 500}, Kind.NOT_KNOWN),
    ("502 HTML", {"status": 502, "body": b"<html>Unicorn!</html>"}, Kind.NOT_KNOWN),
    ("200 HTML", {"body": b"<html>login</html>"}, Kind.NOT_KNOWN),
    ("202 computing", {"status": 202}, Kind.NOT_KNOWN),
    ("204", {"status": 204, "body": b""}, Kind.NOT_KNOWN),
    ("301 to nowhere", {"status": 301}, Kind.NOT_KNOWN),
    ("301 to another host", {"status": 301, "headers": {"Location": "http://10.0.0.1/x"}},
     Kind.NOT_KNOWN),
    ("object for a list", {"body": b'{"errors":[{"type":"RATE_LIMITED"}],"data":null}'},
     Kind.NOT_KNOWN),
    ("words for items", {"body": b'["a","b"]'}, Kind.NOT_KNOWN),
    ("nested without end", {"body": b"[" * 100_000}, Kind.NOT_KNOWN),
    ("truncated JSON", {"body": b'[{"id": 1}, {"id'}, Kind.NOT_KNOWN),
    ("reset mid-body", {"cut_after": 20}, Kind.NOT_KNOWN),
    ("next page elsewhere",
     {"headers": {"Link": '<http://10.0.0.1/forks?page=2>; rel="next"'}}, Kind.NOT_KNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "kind"), [r[1:] for r in REPLIES], ids=[r[0] for r in REPLIES])
def test_every_reply_is_sorted(github: GitHub, fault: dict[str, Any], kind: Kind) -> None:
    """One request, no retry, no exception; only a plain 404 or a block is more than doubt."""
    fill(github, 3)
    github.fail("/forks", times=9, **fault)
    answer = ask_as(github).ask(FORKS, HUNDRED)
    assert answer.kind is kind
    assert answer.items == ()
    assert len(github.asked) == 1


def test_a_slow_server_is_left(github: GitHub) -> None:
    """Headers that do not come and a body that drips both end as "not known"."""
    fill(github, 3)
    github.fail("/forks", header_seconds=0.5)
    assert ask_as(github, read_seconds=0.2).ask(FORKS).kind is Kind.NOT_KNOWN
    github.fail("/forks", byte_seconds=0.01)
    dripping = ask_as(github, whole_seconds=0.3).ask(FORKS)
    assert dripping.kind is Kind.NOT_KNOWN
    assert "Timeout" in dripping.reason


def test_nobody_there_is_not_known() -> None:
    """A refused connection is doubt."""
    client = Client(adapter=ToLoopback("http://127.0.0.1:9"))
    assert client.ask(FORKS).kind is Kind.NOT_KNOWN


def test_limits_are_told_apart(github: GitHub) -> None:
    """Both 403 and 429 can be either limit; headers and words decide."""
    client = ask_as(github)
    github.fail("/forks", status=403, headers={"X-RateLimit-Remaining": "0"})
    primary = client.ask(FORKS)
    assert primary.limit is Limit.PRIMARY
    assert 1700 < (primary.wait_seconds or 0) <= 1802
    github.fail("/forks", status=403, headers={"Retry-After": "77"})
    told = client.ask(FORKS)
    assert (told.limit, told.wait_seconds) == (Limit.SECONDARY, 77)
    github.fail("/forks", status=403, body=b"You have exceeded a secondary rate limit")
    assert client.ask(FORKS).limit is Limit.SECONDARY
    github.fail("/forks", status=429)
    assert client.ask(FORKS).limit is Limit.SECONDARY
    github.fail("/forks", status=401)
    assert client.ask(FORKS).limit is Limit.REFUSED


def test_another_clock_does_not_matter(github: GitHub) -> None:
    """The reset counts from GitHub's own `Date`, which may lie hours off ours."""
    github.clock_skew_seconds = 5 * 3600
    github.fail("/forks", status=403, headers={"X-RateLimit-Remaining": "0"})
    assert 1700 < (ask_as(github).ask(FORKS).wait_seconds or 0) <= 1802


def test_no_other_address_is_asked(github: GitHub) -> None:
    """A page is a path, or an address that GitHub itself gave."""
    client = ask_as(github)
    for place in ("https://example.org/x", "//example.org/x", "file:///etc/passwd"):
        with pytest.raises(UsageError):
            client.ask(place)
    assert github.asked == []


@pytest.mark.parametrize("token", ["ghp_a\nghp_b", "ghp_a\r\nX-Evil: b", "ghp_€"])
def test_a_token_that_fits_no_header_is_an_answer(github: GitHub, token: str) -> None:
    """It is not known, the reason names no token, and nothing is sent."""
    client = ask_as(github, token)
    for answer in (client.ask(FORKS), client.query("{ x }", {})):
        assert answer.kind is Kind.NOT_KNOWN
        assert "ghp" not in answer.reason
    assert github.asked == []


@pytest.mark.parametrize("etag", ['W/"\xe9"', "W/" + "a" * 5000, " "])
def test_an_etag_that_cannot_be_sent_back_is_not_kept(github: GitHub, etag: str) -> None:
    """The page is asked for in full the next time."""
    github.fail("/forks", headers={"ETag": etag})
    answer = ask_as(github).ask(FORKS)
    assert (answer.kind, answer.etag) == (Kind.PAGE, None)


@pytest.mark.parametrize(
    "base",
    ["http://api.github.com", "http://10.0.0.1", "http://127.0.0.1.example", "http://localhost.x",
     "https://user:pw@host", "http://user:pw@127.0.0.1:9", "ftp://host", "no address", "https://",
     "https://host:port", "https://host/?x", "https://a b", "https://[", ""],
)  # fmt: skip
def test_a_token_is_sent_over_tls_or_to_this_machine(base: str) -> None:
    """Any other address is refused before anything is asked; a password in it is not shown."""
    with pytest.raises(UsageError) as caught:
        Client(base=base)
    assert "user:pw" not in str(caught.value)


@pytest.mark.parametrize(
    "base", ["https://ghe.example/api/v3/", "http://127.0.0.1:8080", "http://[::1]:80", API]
)
def test_addresses_of_other_servers_are_taken(base: str) -> None:
    """A company's own server, and one on this machine."""
    assert Client(base=base).base == base.rstrip("/")


def test_unchanged_is_no_answer_to_who_knew_nothing(github: GitHub) -> None:
    """304 for a page that was asked for in full says nothing, and why is said."""
    github.add(7, "a/llama.cpp")
    github.fail("/repositories/7", status=304)
    answer = ask_as(github).ask("repositories/7", many=False)
    assert (answer.kind, answer.status) == (Kind.NOT_KNOWN, 304)
    assert answer.reason == "a page that was asked for in full is called unchanged"
