"""Pull requests, of interest and linked, read in rounds."""

from __future__ import annotations

from support import github_json as make
from support.scene import BUUN, UPSTREAM, Scene

from jobs.db import writing
from jobs.store import forks


def test_pull_requests_of_interest(chain: Scene) -> None:
    """Those whose head we watch, or that somebody linked; opened, pushed to, merged."""
    base, head = chain.github.repos[UPSTREAM], chain.github.repos[BUUN]
    other = chain.github.add(11, "a/llama.cpp", parent=UPSTREAM)
    chain.look()
    ours = make.pull(25110, head, base, "2026-05-18T12:01:00Z", title="dflash <b>")
    theirs = make.pull(25111, other, base, "2026-05-18T12:02:00Z")
    lost = {**make.pull(25112, other, base, "2026-05-18T12:03:00Z"), "user": None}
    lost["head"] = {**lost["head"], "repo": None}
    chain.github.put(UPSTREAM, "pulls", lost, theirs, ours)
    chain.later(minutes=6)
    (opened,) = chain.look().new
    assert opened.kind == "pr_opened"
    assert opened.key == f"gh:pr:{UPSTREAM}:25110:{ours['head']['sha']}:open"
    pushed = {**ours, "updated_at": "2026-05-18T12:07:00Z",
              "head": {**ours["head"], "sha": make.sha("push")}}  # fmt: skip
    chain.github.put(UPSTREAM, "pulls", pushed, lost, theirs)
    chain.later(minutes=6)
    assert [each.kind for each in chain.look().new] == ["pr_updated"]
    merged = {**pushed, "updated_at": "2026-05-18T12:13:00Z", "state": "closed",
              "merged_at": "2026-05-18T12:13:00Z", "closed_at": "2026-05-18T12:13:00Z"}  # fmt: skip
    chain.github.put(UPSTREAM, "pulls", merged, lost, theirs)
    chain.later(minutes=6)
    (told,) = chain.look().new
    assert told.key == f"gh:pr:{UPSTREAM}:25110:{make.sha('push')}:merged"


def test_a_linked_pull_request_is_followed_by_its_head(chain: Scene) -> None:
    """Its own page tells the head commit and the merge."""
    base = chain.github.repos[UPSTREAM]
    pull = make.pull(22105, base, base, "2026-05-18T11:00:00Z")
    as_issue = make.issue(22105, "ggml-org/llama.cpp", "2026-05-18T11:00:00Z",
                          pull_request={"url": None, "html_url": None, "diff_url": None,
                                        "patch_url": None})  # fmt: skip
    chain.github.put(UPSTREAM, "issues", as_issue)
    chain.github.put(UPSTREAM, "pulls", pull)
    with writing(chain.database) as session:
        forks.link_issue(session, "ggml-org/llama.cpp", 22105, note="", now=chain.now)
    chain.look()
    chain.later(minutes=6)
    merged = {
        **pull,
        "state": "closed",
        "merged_at": "2026-05-18T12:05:00Z",
        "closed_at": "2026-05-18T12:05:00Z",
        "updated_at": "2026-05-18T12:05:00Z",
    }
    chain.github.put(UPSTREAM, "pulls", merged)
    (told,) = chain.look().new
    assert told.key == f"gh:pr:{UPSTREAM}:22105:{pull['head']['sha']}:merged"
