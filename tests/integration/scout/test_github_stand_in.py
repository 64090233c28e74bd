"""The stand-in speaks as GitHub's own description says; otherwise our tests would prove little."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.request import urlopen

import pytest
import requests
from support import github_json as make
from support.github import GitHub
from support.github_judge import GraphQLJudge, Judge, fetch, fetch_graphql

from scout.github import pushes, search

pytestmark = pytest.mark.needs("npm")

UPSTREAM, BUUN = 612354784, 1188001002
AT = "2026-05-18T12:00:00Z"
AT_START = datetime(2026, 5, 18, tzinfo=UTC)


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """GitHub's description, once per session."""
    try:
        return fetch(tmp_path_factory.mktemp("openapi"))
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("npm cannot reach its registry; nothing to install helps")


@pytest.fixture(scope="session")
def graphql_judge(tmp_path_factory: pytest.TempPathFactory) -> GraphQLJudge:
    """GitHub's description of what GraphQL answers, once per session."""
    try:
        return fetch_graphql(tmp_path_factory.mktemp("graphql"))
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("npm cannot reach its registry; nothing to install helps")


@pytest.fixture
def github() -> Iterator[GitHub]:
    """One of everything the stand-in can show."""
    with GitHub() as server:
        base = server.add(UPSTREAM, "ggml-org/llama.cpp", stars=90_000)
        head = server.add(BUUN, "spiritbuun/buun-llama-cpp", parent=UPSTREAM)
        merged = {"state": "closed", "closed_at": AT, "merged_at": AT}
        server.put(UPSTREAM, "pulls", make.pull(1, head, base, AT),
                   make.pull(2, head, base, AT, **merged))  # fmt: skip
        closed = {"state": "closed", "closed_at": AT, "state_reason": "completed", "user": None}
        name = "ggml-org/llama.cpp"
        server.put(UPSTREAM, "issues", make.issue(3, name, AT), make.issue(4, name, AT, **closed))
        files = [make.asset(6, "linux.tar.gz")]
        server.put(UPSTREAM, "releases", make.release(5, "b9100", AT, assets=files))
        yield server


PATHS = [
    "/rate_limit",
    "/repos/ggml-org/llama.cpp",
    f"/repositories/{BUUN}",
    f"/repositories/{UPSTREAM}/forks?sort=newest&per_page=100",
    f"/repositories/{UPSTREAM}/releases",
    f"/repositories/{UPSTREAM}/pulls?state=all",
    f"/repositories/{UPSTREAM}/pulls/1",
    "/repos/ggml-org/llama.cpp/pulls/2",
    f"/repositories/{UPSTREAM}/issues?state=all",
    "/repos/ggml-org/llama.cpp/issues/4",
    "/search/repositories?q=llama.cpp+in:name+fork:false+pushed:%3E2020-01-01&per_page=100",
]


@pytest.mark.parametrize("path", PATHS)
def test_every_reply_fits_githubs_description(github: GitHub, judge: Judge, path: str) -> None:
    """The body on the wire, judged by a description that is not ours."""
    with urlopen(github.url + path, timeout=5) as response:  # noqa: S310  our own loopback
        body = json.load(response)
    reply = github.replies[-1]
    assert body == reply.body
    assert body
    assert judge.complaints(reply.template, reply.status, body) == []


def test_moves_and_misses_fit_too(github: GitHub, judge: Judge) -> None:
    """301 leads to the numeric form; 404 has a message."""
    github.rename(BUUN, "spiritbuun/new")
    session = requests.Session()
    moved = session.get(f"{github.url}/repos/spiritbuun/buun-llama-cpp", allow_redirects=False)
    assert moved.headers["Location"] == f"{make.API}/repositories/{BUUN}"
    missed = session.get(f"{github.url}/repos/no/body")
    for reply in (moved, missed):
        found = judge.complaints("/repos/{owner}/{repo}", reply.status_code, reply.json())
        assert found == []
    session.close()


def test_the_judge_is_no_yes_man(github: GitHub, judge: Judge) -> None:
    """A missing key, a wrong type and a bad word are found."""
    template = "/repos/{owner}/{repo}/releases"
    good = make.release(5, "b9100", AT)
    for change in ({"draft": "no"}, {"id": None}, {"assets": [{}]}):
        assert judge.complaints(template, 200, [{**good, **change}])
    without = {key: value for key, value in good.items() if key != "tag_name"}
    assert judge.complaints(template, 200, [without])


def test_what_we_ask_is_what_github_offers(judge: Judge, github: GitHub) -> None:
    """Every parameter and every word we send stands in the description."""
    from scout.github import forks, issues, pulls, releases
    from scout.github.base import Repo
    from scout.github.governor import Tier

    repo = Repo(UPSTREAM, "ggml-org/llama.cpp", Tier.CHAIN)
    cursor = {"until": "2026-05-18T12:00:00+00:00"}
    pages = [source.first_page(repo, cursor) for source in (issues, pulls, releases)]
    pages.append(forks.Census.read({}, AT_START).page(f"repositories/{UPSTREAM}/forks"))
    for page in pages:
        kind = page.place.rpartition("/")[2]
        offered = judge.offered(f"/repos/{{owner}}/{{repo}}/{kind}")
        for name, value in page.params.items():
            assert name in offered, (kind, name)
            assert value in offered[name].get("enum", [value]), (kind, name, value)


def test_a_search_is_one_that_github_offers(judge: Judge) -> None:
    """Its parameters and their words."""
    (found,) = search.searches(["llama.cpp"], [])
    page = found.page(AT_START)
    offered = judge.offered(f"/{page.place}")
    assert page.params["sort"] in offered["sort"]["enum"]
    assert page.params["order"] in offered["order"]["enum"]
    assert "q" in offered


VARIABLES = {"owner": "ggml-org", "name": "llama.cpp", "first": 100, "after": None}


def ask(github: GitHub, **changes: object) -> dict[str, Any]:
    question = {"query": pushes.QUERY, "variables": {**VARIABLES, **changes}}
    reply = requests.post(
        f"{github.url}/graphql", json=question, headers={"Authorization": "token a"}, timeout=5
    )
    return dict(reply.json())


def test_our_question_and_its_answer_fit_githubs_types(
    github: GitHub, graphql_judge: GraphQLJudge
) -> None:
    """The words on the wire, judged by a description that is not ours."""
    for number in range(3):
        github.add(40 + number, f"dev{number}/llama.cpp", parent=UPSTREAM)
    for changes in ({}, {"first": 2}, {"first": 2, "after": "c2"}):
        reply = ask(github, **changes)
        assert reply["data"]["repository"]["forks"]["nodes"]
        assert graphql_judge.complaints(pushes.QUERY, {**VARIABLES, **changes}, reply) == []


def test_the_other_judge_is_no_yes_man_either(github: GitHub, graphql_judge: GraphQLJudge) -> None:
    """An unknown field, a wrong order, a wrong type, and a key too many are found."""
    reply = ask(github)
    for was, now in (("pushedAt", "pushed_at"), ("PUSHED_AT", "PUSHED"), ("$first", "$last")):
        question = pushes.QUERY.replace(was, now)
        assert graphql_judge.complaints(question, VARIABLES, reply)
    assert graphql_judge.complaints(pushes.QUERY, {**VARIABLES, "first": "many"}, reply)
    reply["data"]["repository"]["forks"]["nodes"][0]["stargazerCount"] = "many"
    assert graphql_judge.complaints(pushes.QUERY, VARIABLES, reply)
    reply["data"]["repository"]["forks"]["nodes"][0].update(stargazerCount=1, extra=1)
    assert graphql_judge.complaints(pushes.QUERY, VARIABLES, reply)


def test_graphql_is_for_tokens_and_charged_apart(github: GitHub) -> None:
    """401 without one; each question is a point of its own bucket, never of the REST quota."""
    nobody = requests.post(f"{github.url}/graphql", json={}, timeout=5)
    assert nobody.status_code == 401
    before = github.remaining
    ask(github)
    assert (github.remaining, github.asked[-1].bucket) == (before, "graphql")
    assert github.others["graphql"][1] == 4998


def test_the_stand_in_charges_as_github_does(github: GitHub) -> None:
    """A 304 is free with a token only, and an ETag belongs to its token."""
    session = requests.Session()
    url = f"{github.url}/repositories/{UPSTREAM}/forks"
    signed = {"Authorization": "token a"}
    etag = session.get(url, headers=signed).headers["ETag"]
    again = session.get(url, headers={**signed, "If-None-Match": etag})
    other = session.get(url, headers={"Authorization": "token b", "If-None-Match": etag})
    plain = session.get(url).headers["ETag"]
    nobody = session.get(url, headers={"If-None-Match": plain})
    assert [again.status_code, other.status_code, nobody.status_code] == [304, 200, 304]
    assert [each.charged for each in github.asked] == [True, False, True, True, True]
    assert again.headers["X-RateLimit-Remaining"] == "4999"
    session.close()
