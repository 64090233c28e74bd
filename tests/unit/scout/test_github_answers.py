"""What a status of GitHub means, and how long to wait after it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from requests.structures import CaseInsensitiveDict

from scout.github.answers import (
    Answer,
    Kind,
    Limit,
    advice_for,
    backoff_until,
    cooldown_until,
    read_quota,
    read_token_end,
    sort,
)

NOW = datetime(2026, 5, 18, 12, 0, tzinfo=UTC)
DATE = "Mon, 18 May 2026 12:00:00 GMT"


def reply(status: int, text: str = "", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return sort(status, CaseInsensitiveDict(named), text, now=NOW)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (304, Kind.UNCHANGED),
        (404, Kind.MISSING),
        (451, Kind.BLOCKED),
        (409, Kind.EMPTY),
        *[(each, Kind.NOT_KNOWN) for each in (202, 204, 301, 401, 403, 410, 422, 429, 500, 503)],
    ],
)
def test_statuses(status: int, kind: Kind) -> None:
    """Only three statuses say something; all others are doubt."""
    answer = reply(status)
    assert answer.kind is kind
    assert answer.trusted is (kind is not Kind.NOT_KNOWN)


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("no readable answer (ConnectionError)", "FORKSCOUT_GITHUB_API"),
        ("GitHub refused the token", "make a new one"),
        ("the hourly quota is used up", "wait"),
        ("GitHub asked us to slow down", "wait"),
        ("GitHub answered 502", "GitHub has trouble"),
        ("GitHub answered 403", "what the token may read"),
        ("another repository answered", "asked again by itself"),
    ],
)
def test_each_reason_has_a_next_step(reason: str, advice: str) -> None:
    """A person is told what to do, or that nothing is to be done."""
    assert advice in advice_for(reason)


def test_the_end_of_a_token_is_read_in_any_zone() -> None:
    """As GitHub writes it; anything else is no date."""
    name = "GitHub-Authentication-Token-Expiration"
    assert str(read_token_end({name: "2026-12-31 23:00:00 -0500"})) == "2027-01-01 04:00:00+00:00"
    assert str(read_token_end({name: "2026-12-31 23:00:00 UTC"})) == "2026-12-31 23:00:00+00:00"
    for text in ("", "soon", "2026-13-31 23:00:00 UTC", "9999-12-31 23:59:59 -2300"):
        assert read_token_end({name: text}) is None


def test_the_first_sign_of_a_limit_wins() -> None:
    """Retry-After, then an empty quota, then the words."""
    both = reply(403, retry_after="30", x_ratelimit_remaining="0", date=DATE)
    assert (both.limit, both.wait_seconds) == (Limit.SECONDARY, 30)
    reset = str(int(NOW.timestamp()) + 600)
    empty = reply(429, x_ratelimit_remaining="0", x_ratelimit_reset=reset, date=DATE)
    assert (empty.limit, empty.wait_seconds) == (Limit.PRIMARY, 601)
    words = reply(403, "You have triggered an abuse detection mechanism")
    assert (words.limit, words.wait_seconds) == (Limit.SECONDARY, None)
    assert reply(403, "Resource not accessible by token").limit is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("290", 290), ("0", 1), ("-5", 1), ("999999", 21600), ("soon", 60),
     ("Mon, 18 May 2026 12:02:00 GMT", 120)],
)  # fmt: skip
def test_retry_after_is_read_and_bounded(text: str, seconds: float) -> None:
    """Seconds or a date; nonsense is a minute, and nothing holds us for longer than six hours."""
    assert reply(429, retry_after=text, date=DATE).wait_seconds == seconds


def test_a_reset_beyond_the_hour_is_a_wrong_clock() -> None:
    """And one in the past is now."""
    for offset, seconds in ((10**6, 3660), (-500, 0)):
        headers = {
            "x-ratelimit-limit": "5000",
            "x-ratelimit-remaining": "12",
            "x-ratelimit-reset": str(int(NOW.timestamp()) + offset),
        }
        quota = read_quota(CaseInsensitiveDict(headers), now=NOW)
        assert quota is not None
        assert quota.reset_at == NOW + timedelta(seconds=seconds)
        assert (quota.limit, quota.remaining) == (5000, 12)
    assert read_quota({"X-RateLimit-Limit": "x"}, now=NOW) is None


def test_secondary_limits_double_from_a_minute_to_an_hour() -> None:
    """What GitHub said counts where it is longer."""
    answer = Answer(Kind.NOT_KNOWN, 429, limit=Limit.SECONDARY)
    waits = [cooldown_until(answer, strikes=n, now=NOW) - NOW for n in (1, 2, 3, 9)]
    assert [each.total_seconds() for each in waits] == [60, 120, 240, 3600]
    told = Answer(Kind.NOT_KNOWN, 429, limit=Limit.SECONDARY, wait_seconds=290)
    assert (cooldown_until(told, strikes=1, now=NOW) - NOW).total_seconds() == 290
    short = Answer(Kind.NOT_KNOWN, 429, limit=Limit.SECONDARY, wait_seconds=5)
    assert (cooldown_until(short, strikes=1, now=NOW) - NOW).total_seconds() == 60


def test_a_page_that_fails_is_left_longer_each_time() -> None:
    """One minute, two, four, an hour at most."""
    answer = Answer(Kind.NOT_KNOWN, 502)
    waits = [backoff_until(answer, failures=n, now=NOW) - NOW for n in (1, 2, 3, 20)]
    assert [each.total_seconds() for each in waits] == [60, 120, 240, 3600]
