"""Files of a real loopback hub: whole, verified and resumed, or one clear word why not."""

from __future__ import annotations

import random
import resource
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from support.weights_hub import COMMIT, REPO, Handler, WeightsHub, sha256_of, status

from jobs.control import Control
from jobs.errors import JobFailure, Later, Stopped, Transient, UsageError
from jobs.hub import Hub, snapshot
from jobs.hub_names import set_sha256, shard_files
from jobs.model import Blame
from jobs.tables import ModelFileRow
from workers.download_plan import LEAST_RATE, LeastRate
from workers.weight_bringing import bring
from workers.weight_store import Store

WEIGHTS = random.Random(7).randbytes(3_000_000)
FILE = "sub/tiny-Q4_K_M.gguf"
SHA = sha256_of(WEIGHTS)
TOKEN = "hf_secret"
BLOCK_BYTES = 256 * 1024

Bring = Callable[..., tuple[Path, ...]]


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")


@pytest.fixture
def hub() -> Iterator[WeightsHub]:
    with WeightsHub({FILE: WEIGHTS}) as server:
        yield server


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "weights"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def fetch(hub: WeightsHub, root: Path, tmp_path: Path, said: list[str]) -> Bring:
    """Bring with every argument filled in."""

    def run(*, token: str = "", control: Control | None = None, **changes: Any) -> Any:
        limits = {
            key: changes.pop(key) for key in ("budget_bytes", "min_free_bytes") if key in changes
        }
        least_rate = changes.pop("least_rate", LEAST_RATE)
        places = changes.pop("places", lambda _sha256: ())
        store = Store(
            root,
            kept=set,
            let_go=lambda _sha: True,
            say=said.append,
            block_bytes=BLOCK_BYTES,
            **limits,
        )
        values = {
            "name": "tiny",
            "model_class": "tiny",
            "sha256": SHA,
            "size_bytes": None,
            "source": {"repo": REPO, "file": FILE, "revision": COMMIT},
        }
        return bring(
            ModelFileRow(**{**values, **changes}),
            store,
            hub=Hub(hub.url, SecretStr(token)),
            scratch=tmp_path,
            control=control or Control(),
            log=None,
            say=said.append,
            least_rate=least_rate,
            places=places,
        )

    return run


def left(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.suffix != ".lock")


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


def test_a_size_that_the_hub_does_not_say_is_unknown(hub: WeightsHub, fetch: Bring) -> None:
    """It is never nothing: the watch list says it, or nothing is downloaded."""
    hub.said[FILE] = {"size": None}
    with pytest.raises(JobFailure, match="no known bytes") as caught:
        fetch()
    assert caught.value.failure_class == "weights_size"
    assert hub.count("cdn") == 0
    assert fetch(size_bytes=len(WEIGHTS))[0].read_bytes() == WEIGHTS


def test_the_token_never_leaves_the_hub(hub: WeightsHub, fetch: Bring) -> None:
    """The place that the hub redirects to is another origin, and is shown nothing."""
    fetch(token=TOKEN)
    shown = {kind: headers.get("Authorization") for kind, _, headers in hub.asked}
    assert shown == {"api": f"Bearer {TOKEN}", "resolve": f"Bearer {TOKEN}", "cdn": None}


def test_an_ignored_range_starts_again_cleanly(
    hub: WeightsHub, fetch: Bring, said: list[str]
) -> None:
    """A 200 after half of the file brings the whole of it, once."""
    hub.faults["cdn"] = [
        lambda handler: handler.ranged(handler.file, length=1_500_000),
        lambda handler: handler.give(200, handler.file),
    ]
    [path] = fetch()
    assert path.read_bytes() == WEIGHTS
    assert any("ignores ranges" in words for words in said)


def test_a_short_body_goes_on_where_it_ended(hub: WeightsHub, fetch: Bring) -> None:
    """The rest is asked for with a range, at once and by the same job."""
    hub.faults["cdn"] = [lambda handler: handler.ranged(handler.file, length=1_000_000)]
    [path] = fetch()
    assert path.read_bytes() == WEIGHTS
    assert [headers["Range"] for kind, _, headers in hub.asked if kind == "cdn"][1].startswith(
        "bytes=1000000-"
    )


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (status(206, b"x" * 9, Content_Range=f"bytes 0-8/{len(WEIGHTS) + 1}"), "bytes, not"),
        (status(206, b"x" * 9, Content_Range=f"bytes 5-13/{len(WEIGHTS)}"), "asked was from 0"),
        (status(206, b"x" * 9, Content_Range="bytes */9"), "comes with the range"),
        (status(206, b"x" * 9), "comes with the range"),
        (status(200, b"<html>sign in</html>"), "bytes, not"),
        (status(206, b"x", Content_Encoding="gzip"), "is packed"),
        (status(500), "answered 500"),
        (status(502, b"<html>"), "answered 502"),
    ],
)
def test_an_answer_of_another_file_is_not_taken(
    hub: WeightsHub, fetch: Bring, root: Path, answer: Any, says: str
) -> None:
    """It is tried again later, and not a byte of it is kept."""
    hub.faults["cdn"] = [answer]
    with pytest.raises(Transient, match=says):
        fetch()
    assert left(root) == []


def test_more_than_promised_is_not_taken(hub: WeightsHub, fetch: Bring, root: Path) -> None:
    """A body without a length that goes on past the file's end is thrown away."""

    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(WEIGHTS + b"more")
        handler.close_connection = True

    hub.faults["cdn"] = [endless]
    with pytest.raises(Transient, match="sends more than"):
        fetch()
    assert left(root) == []


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


def test_a_digest_the_hub_contradicts_costs_no_byte(hub: WeightsHub, fetch: Bring) -> None:
    """A replaced file is known from the hub's own words."""
    hub.said[FILE] = {"sha256": "a" * 64}
    with pytest.raises(JobFailure, match="nothing was downloaded") as caught:
        fetch()
    assert caught.value.blame is Blame.CONFIGURATION
    assert hub.count("cdn") == 0


def test_an_expired_link_is_asked_for_again(hub: WeightsHub, fetch: Bring) -> None:
    """A 403 from elsewhere is an old signature; one from the hub itself is not."""
    hub.faults["cdn"] = [status(403, b"<Error>expired</Error>"), None]
    assert fetch()[0].read_bytes() == WEIGHTS
    assert hub.count("resolve") == 2


def test_links_that_are_always_expired_end(hub: WeightsHub, fetch: Bring) -> None:
    """Three in a row give the worker back."""
    hub.faults["cdn"] = [status(403)] * 9
    with pytest.raises(Transient, match="expired"):
        fetch()
    assert hub.count("resolve") == 3


@pytest.mark.parametrize(
    ("code", "headers", "failure_class"),
    [
        (401, {}, "hub_missing"),
        (401, {"X_Error_Code": "RepoNotFound"}, "hub_missing"),
        (404, {"X_Error_Code": "RepoNotFound"}, "hub_missing"),
        (401, {"X_Error_Code": "GatedRepo"}, "hub_gated"),
        (403, {"X_Error_Code": "GatedRepo"}, "hub_gated"),
        (403, {}, "hub_private"),
        (404, {"X_Error_Code": "RevisionNotFound"}, "hub_revision"),
        (404, {"X_Error_Code": "EntryNotFound"}, "hub_file_gone"),
        (410, {}, "hub_file_gone"),
        (403, {"X_Error_Message": "Access to this resource is disabled."}, "hub_disabled"),
    ],
)
@pytest.mark.parametrize("part", ["api", "resolve"])
def test_each_refusal_of_the_hub_has_its_class(
    hub: WeightsHub, fetch: Bring, part: str, code: int, headers: Any, failure_class: str
) -> None:
    """None is tried again by itself, and each says what a person can do."""
    hub.faults[part] = [status(code, **headers)]
    with pytest.raises(JobFailure) as caught:
        fetch()
    assert caught.value.failure_class == failure_class
    assert caught.value.blame is Blame.CONFIGURATION
    assert caught.value.advice


def test_a_deleted_file_is_said(hub: WeightsHub, fetch: Bring) -> None:
    """The commit is there, the file is not in it."""
    del hub.files[FILE]
    with pytest.raises(JobFailure, match="is gone"):
        fetch()


def test_bytes_that_lie_elsewhere_in_the_repository_are_named(
    hub: WeightsHub, fetch: Bring
) -> None:
    """A file that was moved, or a commit that was squashed away: the advice says where it is."""
    hub.files = {"new/tiny-Q4_K_M.gguf": hub.files[FILE], "a/../b.gguf": WEIGHTS}
    for fault in (None, status(404, X_Error_Code="RevisionNotFound")):
        hub.faults["api"] = [fault]
        with pytest.raises(JobFailure) as caught:
            fetch()
        assert f"submit fetch {REPO}/new/tiny-Q4_K_M.gguf`" in caught.value.advice
    assert hub.count("cdn") == 0


def test_other_bytes_of_the_name_are_another_model(hub: WeightsHub, fetch: Bring) -> None:
    """They are suggested as that, and never fetched in its stead."""
    hub.files = {"new/tiny-Q4_K_M.gguf": b"other" * 99, "new/tiny-Q8_0.gguf": b"x"}
    with pytest.raises(JobFailure, match="is gone") as caught:
        fetch()
    assert "new/tiny-Q4_K_M.gguf is there now, with other bytes" in caught.value.advice
    assert hub.count("cdn") == 0


def test_bytes_that_the_watch_saw_elsewhere_are_named(hub: WeightsHub, fetch: Bring) -> None:
    """Of a repository that is gone; a place that could mean something else is never named."""
    seen = ["o/r/../../x.gguf", "o/r/x.gguf --yes", "other/Repo/tiny-Q4_K_M.gguf"]
    for places, named in ((seen, "other/Repo/tiny-Q4_K_M.gguf"), (seen[:2], "check the name")):
        hub.faults["api"] = [status(401)] * 2
        with pytest.raises(JobFailure, match="not there, or it is private") as caught:
            fetch(places=lambda _sha256, found=places: found)
        assert named in caught.value.advice
        assert "x.gguf" not in caught.value.advice


@pytest.mark.parametrize(
    ("code", "headers", "seconds"),
    [
        (429, {"RateLimit": '"resolvers";r=0;t=290'}, 291),
        (429, {"Retry_After": "17"}, 17),
        (429, {"Retry_After": "99999999"}, 3600),
        (429, {}, 300),
        (503, {"Retry_After": "5"}, 5),
    ],
)
@pytest.mark.parametrize("part", ["api", "resolve", "cdn"])
def test_a_quota_puts_the_job_off(
    hub: WeightsHub, fetch: Bring, part: str, code: int, headers: Any, seconds: float
) -> None:
    """The time is the hub's, bounded; nobody sleeps."""
    hub.faults[part] = [status(code, **headers)]
    began = time.monotonic()
    with pytest.raises(Later) as caught:
        fetch()
    assert caught.value.wait_seconds == seconds
    assert time.monotonic() - began < 2


def test_a_moved_repository_is_followed(hub: WeightsHub, fetch: Bring, said: list[str]) -> None:
    """The hub redirects on its own address; the log says where it went."""
    hub.repo = "new-owner/Tiny-GGUF"
    moved = f"/api/models/new-owner/Tiny-GGUF/revision/{COMMIT}?blobs=true"
    hub.faults["api"] = [status(307, Location=moved)]
    assert fetch(token=TOKEN)[0].read_bytes() == WEIGHTS
    assert any("has moved to new-owner/Tiny-GGUF" in words for words in said)
    assert hub.asked[1][2]["Authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    "location",
    [
        "",
        "ftp://x/y",
        "http://user:pw@localhost/x",
        "http://[bad",
        "/circle",
        "http://a..b/x",
        "http://xn--a/x",
        "http:\\\\localhost:5\\x",
    ],
)
def test_a_redirect_to_nowhere_ends(hub: WeightsHub, fetch: Bring, location: str) -> None:
    """Addresses that are none, and circles, are passing faults."""
    hub.faults["resolve"] = [status(302, Location=location)] * 50
    with pytest.raises(Transient):
        fetch()


def sized(said: str) -> bytes:
    """A description of one file with these words as its size."""
    file = f'{{"rfilename": "{FILE}", "size": {said}}}'
    return f'{{"sha": "{COMMIT}", "siblings": [{file}]}}'.encode()


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b"{}",
        b'{"sha": "main", "siblings": []}',
        b"[" * 100_000,
        *(sized(said) for said in ("9" * 4000, "-5", "true", "NaN", "1e3", str(2**63), '"7"')),
    ],
)
def test_a_strange_description_is_a_passing_fault(
    hub: WeightsHub, fetch: Bring, body: bytes
) -> None:
    """HTML with status 200 says nothing about the file."""
    hub.faults["api"] = [status(200, body)]
    with pytest.raises(Transient, match="no description") as caught:
        fetch()
    assert len(caught.value.detail) < 200


def test_no_room_is_known_before_a_byte_came(hub: WeightsHub, fetch: Bring, root: Path) -> None:
    """Neither on the disk nor in the budget."""
    for limits in ({"min_free_bytes": 2**62}, {"budget_bytes": len(WEIGHTS) - 1}):
        with pytest.raises(JobFailure, match="no room") as caught:
            fetch(**limits)
        assert caught.value.failure_class == "disk_full"
    assert hub.count("cdn") == 0
    assert left(root) == []


def test_a_disk_that_fills_blames_the_machine(fetch: Bring, root: Path) -> None:
    """The room is taken at the start, so the system says so before the bytes come."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(WEIGHTS) - 1, hard))
    try:
        with pytest.raises(JobFailure, match="no room") as caught:
            fetch()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.failure_class == "disk_full"
    assert left(root) == []


def test_a_cancel_ends_at_once_and_keeps_the_part(
    hub: WeightsHub, fetch: Bring, root: Path
) -> None:
    """A server that has fallen silent does not hold it up; the next attempt goes on."""
    gate = threading.Event()

    def stalls(handler: Handler) -> None:
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes 0-{len(WEIGHTS) - 1}/{len(WEIGHTS)}")
        handler.send_header("Content-Length", str(len(WEIGHTS)))
        handler.end_headers()
        handler.wfile.write(WEIGHTS[:1_000_000])
        gate.wait(20)
        handler.close_connection = True

    hub.faults["cdn"] = [stalls]
    control = Control()
    asked_at = []

    def cancel() -> None:
        while control.progress.get("done") is None or control.progress["done"] < 900_000:
            time.sleep(0.01)
        asked_at.append(time.monotonic())
        control.ask("cancelled")

    threading.Thread(target=cancel).start()
    with pytest.raises(Stopped):
        fetch(control=control)
    assert time.monotonic() - asked_at[0] < 1
    gate.set()
    part = root / f"{SHA}.part"
    kept = part.stat().st_size
    assert 0 < kept <= 1_000_000
    assert kept % BLOCK_BYTES == 0
    [path] = fetch()
    assert path.read_bytes() == WEIGHTS
    resumed = [headers["Range"] for kind, _, headers in hub.asked if kind == "cdn"][-1]
    assert resumed == f"bytes={kept}-{len(WEIGHTS) - 1}"


def test_a_cancel_while_a_part_is_verified_keeps_all_of_it(
    hub: WeightsHub, fetch: Bring, root: Path
) -> None:
    """What was not read again yet is not lost."""
    hub.faults["cdn"] = [
        lambda handler: handler.ranged(handler.file, length=2_000_000),
        status(500),
    ]
    with pytest.raises(Transient):
        fetch()
    size = (root / f"{SHA}.part").stat().st_size

    class Impatient(Control):
        def check(self) -> None:
            if self.progress.get("phase") == "verify part":
                self.ask("cancelled")
            super().check()

    with pytest.raises(Stopped):
        fetch(control=Impatient())
    assert (root / f"{SHA}.part").stat().st_size == size
    fetch()
    assert f"bytes={size}-" in hub.asked[-1][2]["Range"]


def test_a_cancel_ends_the_question_for_the_commit_too(hub: WeightsHub, fetch: Bring) -> None:
    """A hub that does not answer holds nobody up."""
    gate = threading.Event()
    hub.faults["api"] = [lambda _handler: gate.wait(20)]
    control = Control()
    threading.Timer(0.3, control.ask, ["cancelled"]).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        fetch(control=control)
    assert time.monotonic() - began < 1
    gate.set()


def drips_its_head(handler: Handler) -> None:
    """One byte of a header that has no end, and another."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    for _ in range(400):
        handler.wfile.write(b"a")
        time.sleep(0.02)


def drips_its_body(handler: Handler) -> None:
    """A sound head, and byte after byte."""
    handler.send_response(206)
    handler.send_header("Content-Range", f"bytes 0-{len(WEIGHTS) - 1}/{len(WEIGHTS)}")
    handler.send_header("Content-Length", str(len(WEIGHTS)))
    handler.end_headers()
    handler.close_connection = True
    for byte in WEIGHTS[:400]:
        handler.wfile.write(bytes([byte]))
        time.sleep(0.02)


@pytest.mark.parametrize("part", ["resolve", "cdn"])
@pytest.mark.parametrize("drips", [drips_its_head, drips_its_body])
def test_a_server_that_drips_is_left(
    hub: WeightsHub, fetch: Bring, part: str, drips: Callable[[Handler], None]
) -> None:
    """Each byte comes in time, the file would take years: the worker is given back."""
    hub.faults[part] = [drips]
    began = time.monotonic()
    with pytest.raises(Transient, match="too slowly"):
        fetch(least_rate=LeastRate(seconds=0.4))
    assert time.monotonic() - began < 4
    assert fetch()[0].read_bytes() == WEIGHTS


def test_many_slow_answers_are_one_slow_file(hub: WeightsHub, fetch: Bring) -> None:
    """A server that ends each answer after a little is not waited for again and again."""

    def little(handler: Handler) -> None:
        time.sleep(0.3)
        handler.ranged(handler.file, length=70_000)

    hub.faults["cdn"] = [little] * 50
    with pytest.raises(Transient, match="too slowly"):
        fetch(least_rate=LeastRate(seconds=0.5, bytes_a_second=1_000_000))
    assert hub.count("cdn") < 5


@pytest.mark.parametrize("drips", [drips_its_head, drips_its_body])
def test_a_description_in_drops_is_left(hub: WeightsHub, drips: Callable[[Handler], None]) -> None:
    """The question for the commit has one limit for all of its answer."""
    hub.faults["api"] = [drips]
    began = time.monotonic()
    with pytest.raises(Transient):
        snapshot(Hub(hub.url), REPO, COMMIT, whole_seconds=0.4)
    assert time.monotonic() - began < 4


@pytest.mark.parametrize("token", ["hf_\n", "hf_a b", "hf_\u00e9", "x" * 2000])
def test_a_damaged_token_is_refused_and_not_shown(fetch: Bring, token: str) -> None:
    """What no header takes would else stand in the words of the error."""
    with pytest.raises(UsageError) as caught:
        fetch(token=f"{token}end")
    assert "hf_" not in caught.value.message + caught.value.advice


@pytest.mark.parametrize("damage", ["block", "journal", "size", "head"])
def test_a_damaged_part_costs_its_blocks_only(
    hub: WeightsHub, fetch: Bring, root: Path, damage: str
) -> None:
    """What does not agree with the journal is fetched again, never used."""
    hub.faults["cdn"] = [
        lambda handler: handler.ranged(handler.file, length=2_000_000),
        status(500),
    ]
    with pytest.raises(Transient):
        fetch()
    part, journal = root / f"{SHA}.part", root / f"{SHA}.journal"
    assert part.stat().st_size == 2_000_000 // BLOCK_BYTES * BLOCK_BYTES
    expected = 3 * BLOCK_BYTES
    lines = journal.read_text().splitlines()
    if damage == "block":
        with part.open("r+b") as file:
            file.seek(expected + 5)
            file.write(b"damage")
    elif damage == "journal":
        journal.write_text("\n".join([*lines[:4], "00" * 16]) + "\n" + lines[5][:7])
    elif damage == "size":
        with part.open("r+b") as file:
            file.truncate(expected + 100)
    else:
        journal.write_text("\n".join(["[1, 2]", *lines[1:]]) + "\n")
        expected = 0
    [path] = fetch()
    assert path.read_bytes() == WEIGHTS
    assert f"bytes={expected}-" in hub.asked[-1][2]["Range"]


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


def test_weights_without_a_source_are_asked_for(fetch: Bring) -> None:
    """Only a person can bring them."""
    with pytest.raises(JobFailure, match="not here") as caught:
        fetch(source={})
    assert "weights add" in caught.value.advice
