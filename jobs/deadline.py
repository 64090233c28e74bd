"""One limit for a whole question; it decides nothing, and who answers later is not heard."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar, cast

T = TypeVar("T")


def answered_within(seconds: float, ask: Callable[[], T], *, name: str) -> T:
    """What `ask` returns or raises; raises `TimeoutError` where it does neither in time.

    It is asked in a thread that is left behind then: clients of the network limit each wait, not
    the sum of them, and a server may send its headers in drops.
    """
    got: list[tuple[T | None, BaseException | None]] = []

    def work() -> None:
        try:
            got.append((ask(), None))
        except BaseException as fault:  # raised again where it was asked for
            got.append((None, fault))

    asking = threading.Thread(target=work, name=name, daemon=True)
    asking.start()
    asking.join(max(seconds, 0.0))
    if not got:
        raise TimeoutError
    answer, fault = got[0]
    if fault is not None:
        raise fault
    return cast(T, answer)
