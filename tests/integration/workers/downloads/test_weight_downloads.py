"""Files and sets of a real loopback hub come whole, verified and once."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest
from support.one_file import FILE, SHA, TOKEN, WEIGHTS, Bring, left
from support.weights_hub import COMMIT, REPO, WeightsHub, sha256_of, status

from jobs.control import Control
from jobs.errors import JobFailure, Later, Transient
from jobs.hub_names import set_sha256, shard_files
from jobs.model import Blame


def test_a_file_comes_whole_and_verified(hub: WeightsHub, fetch: Bring, root: Path) -> None:
    """It lies read-only under its digest, nothing else is left, and the second asks nobody."""
    control = Control()
    [path] = fetch(control=control)
    assert path == root / f"{SHA}.gguf"
    assert path.read_bytes() == WEIGHTS
    assert path.stat().st_mode & 0o777 == 0o444
    assert left(root) == [path.name]
    assert control.progress["phase"] == "download"
    assert control.progress["done"] == control.progress["total"] == len(WEIGHTS)
    asked = len(hub.asked)
    assert fetch() == (path,)
    assert len(hub.asked) == asked


def test_the_commit_is_what_is_asked_for(hub: WeightsHub, fetch: Bring) -> None:
    """A branch is resolved once; the bytes come from the commit."""
    fetch(source={"repo": REPO, "file": FILE})
    assert "/revision/main?" in hub.asked[0][1]
    assert f"/resolve/{COMMIT}/{FILE}" in hub.asked[1][1]


def test_a_repository_of_thousands_of_files_costs_three_requests(
    hub: WeightsHub, fetch: Bring
) -> None:
    """One for the description, one for the link, one for the bytes."""
    hub.files |= {f"shards/{number}.bin": b"x" for number in range(8_000)}
    assert fetch()[0].read_bytes() == WEIGHTS
    assert [kind for kind, _, _ in hub.asked] == ["api", "resolve", "cdn"]


def test_the_token_never_leaves_the_hub(hub: WeightsHub, fetch: Bring) -> None:
    """The place that the hub redirects to is another origin, and is shown nothing."""
    fetch(token=TOKEN)
    shown = {kind: headers.get("Authorization") for kind, _, headers in hub.asked}
    assert shown == {"api": f"Bearer {TOKEN}", "resolve": f"Bearer {TOKEN}", "cdn": None}


def test_wrong_bytes_of_the_same_size_are_deleted(
    hub: WeightsHub, fetch: Bring, root: Path
) -> None:
    """The digest is compared with all that came; the message says what was done."""
    hub.faults["cdn"] = [lambda handler: handler.ranged(b"x" + WEIGHTS[1:])]
    with pytest.raises(JobFailure, match="they were deleted") as caught:
        fetch()
    assert caught.value.failure_class == "weights_sha256"
    assert caught.value.blame is Blame.INFRASTRUCTURE
    assert left(root) == []
    assert fetch()[0].read_bytes() == WEIGHTS


def test_an_expired_link_is_asked_for_again(hub: WeightsHub, fetch: Bring) -> None:
    """A 403 from elsewhere is an old signature; one from the hub itself is not."""
    hub.faults["cdn"] = [status(403, b"<Error>expired</Error>"), None]
    assert fetch()[0].read_bytes() == WEIGHTS
    assert hub.count("resolve") == 2


def test_a_moved_repository_is_followed(hub: WeightsHub, fetch: Bring, said: list[str]) -> None:
    """The hub redirects on its own address; the log says where it went."""
    hub.repo = "new-owner/Tiny-GGUF"
    moved = f"/api/models/new-owner/Tiny-GGUF/revision/{COMMIT}?blobs=true"
    hub.faults["api"] = [status(307, Location=moved)]
    assert fetch(token=TOKEN)[0].read_bytes() == WEIGHTS
    assert any("has moved to new-owner/Tiny-GGUF" in words for words in said)
    assert hub.asked[1][2]["Authorization"] == f"Bearer {TOKEN}"


def test_many_who_want_it_download_it_once(hub: WeightsHub, fetch: Bring) -> None:
    """The others are put off and find it later."""
    hub.pause_seconds = 0.01
    outcomes: list[str] = []

    def one() -> None:
        while True:
            try:
                fetch()
            except Later:
                outcomes.append("later")
                time.sleep(0.1)
            else:
                outcomes.append("here")
                return

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("here") == 4
    assert "later" in outcomes
    assert hub.count("cdn") == 1


def test_a_damaged_file_is_fetched_again(hub: WeightsHub, fetch: Bring) -> None:
    """A disk that lost a bit costs a download and never a wrong number."""
    [path] = fetch()
    path.chmod(0o644)
    path.write_bytes(b"x" + WEIGHTS[1:])
    assert fetch()[0].read_bytes() == WEIGHTS
    assert hub.count("cdn") == 2


SET = shard_files("big-00001-of-00003.gguf")
SHARDS = {name: random.Random(name).randbytes(700_000) for name in SET}
SET_SOURCE = {
    "repo": REPO,
    "file": SET[0],
    "revision": COMMIT,
    "shards": [sha256_of(content) for content in SHARDS.values()],
}
SET_SHA = set_sha256(SET_SOURCE["shards"])


def test_a_set_is_there_whole_or_not_at_all(hub: WeightsHub, fetch: Bring, root: Path) -> None:
    """A fault in its last file shows none of it; the next attempt fetches only what is missing."""
    hub.files = dict(SHARDS)
    hub.faults["cdn"] = [None, None, status(500)]
    with pytest.raises(Transient):
        fetch(source=SET_SOURCE, sha256=SET_SHA)
    assert not (root / SET_SHA).exists()
    paths = fetch(source=SET_SOURCE, sha256=SET_SHA)
    assert [path.name for path in paths] == list(SET)
    assert [path.read_bytes() for path in paths] == list(SHARDS.values())
    assert hub.count("cdn") == 4
    assert left(root) == [SET_SHA]
    assert fetch(source=SET_SOURCE, sha256=SET_SHA) == paths
    assert hub.count("cdn") == 4


def test_a_set_that_lacks_a_file_costs_no_byte(hub: WeightsHub, fetch: Bring) -> None:
    """The repository is looked at before anything is downloaded."""
    hub.files = {name: SHARDS[name] for name in SET[:2]}
    with pytest.raises(JobFailure, match="is gone"):
        fetch(source=SET_SOURCE, sha256=SET_SHA)
    assert hub.count("cdn") == 0


def test_a_set_of_wrong_digests_is_refused(fetch: Bring) -> None:
    """As many digests as files, and theirs is the set's."""
    for source in ({**SET_SOURCE, "shards": []}, {**SET_SOURCE, "shards": ["a" * 64] * 3}):
        with pytest.raises(JobFailure) as caught:
            fetch(source=source, sha256=SET_SHA)
        assert caught.value.failure_class == "weights_set"
