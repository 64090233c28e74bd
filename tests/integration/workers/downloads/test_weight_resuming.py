"""Downloads that were ended, cut or damaged go on with what is sound of them."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from support.one_file import BLOCK_BYTES, SHA, WEIGHTS, Bring
from support.weights_hub import Handler, WeightsHub, status

from jobs.control import Control
from jobs.errors import Stopped, Transient


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
