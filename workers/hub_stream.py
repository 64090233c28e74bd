"""One answer of the hub, read by a thread of its own, so that a cancel never waits for a server."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar, cast

from jobs.control import Control
from jobs.hub import Reply
from workers.download_plan import Waiting

POLL_SECONDS = 0.1
CHUNKS_AHEAD = 16

T = TypeVar("T")


@dataclass(frozen=True)
class End:
    """Nothing follows; `fault` says why, where the body did not simply end."""

    fault: Exception | None = None


def listening(control: Control, ask: Callable[[], T]) -> T:
    """What `ask` returns or raises; raises `Stopped` within a moment of a cancel."""
    answers: queue.Queue[tuple[T | None, Exception | None]] = queue.Queue(1)

    def work() -> None:
        try:
            answers.put((ask(), None))
        except Exception as fault:  # handed over, as below
            answers.put((None, fault))

    threading.Thread(target=work, name="asking", daemon=True).start()
    while True:
        control.check()
        with contextlib.suppress(queue.Empty):
            answer, fault = answers.get(timeout=POLL_SECONDS)
            if fault is not None:
                raise fault
            return cast(T, answer)


class Incoming:
    """Use it in a `with` block: the head first, then chunks until `End`."""

    def __init__(
        self,
        ask: Callable[[], AbstractContextManager[Reply]],
        control: Control,
        *,
        waiting: Waiting,
    ) -> None:
        self._ask = ask
        self._control = control
        self._waiting = waiting
        self._items: queue.Queue[Reply | bytes | End] = queue.Queue(CHUNKS_AHEAD)
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._read, name="download", daemon=True)

    def __enter__(self) -> Incoming:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        with contextlib.suppress(queue.Empty):
            while True:
                self._items.get_nowait()

    def next(self) -> Reply | bytes | End:
        """What came next; raises `Stopped` within a moment of a cancel, `Transient` for a drip."""
        while True:
            self._control.check()
            began = time.monotonic()
            item: Reply | bytes | End | None = None
            with contextlib.suppress(queue.Empty):
                item = self._items.get(timeout=POLL_SECONDS)
            if not isinstance(item, End):
                gained = len(item) if isinstance(item, bytes) else 0
                self._waiting.note(time.monotonic() - began, gained_bytes=gained)
            if item is not None:
                return item

    def _read(self) -> None:
        try:
            with self._ask() as reply:
                self._hand(reply)
                if reply.status in (200, 206):
                    for chunk in reply.chunks():
                        if not self._hand(chunk):
                            return
            self._hand(End())
        except Exception as fault:  # handed over: whoever waits for the answer must hear of it
            self._hand(End(fault))

    def _hand(self, item: Reply | bytes | End) -> bool:
        while not self._left.is_set():
            with contextlib.suppress(queue.Full):
                self._items.put(item, timeout=POLL_SECONDS)
                return True
        return False
