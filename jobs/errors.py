"""Every error this project raises on purpose; refuses to know what caused it elsewhere."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Sequence

from jobs.model import Blame


class ScoutError(Exception):
    """Something went wrong"""

    exit_code = 1
    tells_class = True
    """Whether what happened is understood only with the class's own words."""

    def __init__(self, detail: str = "", *, advice: str = "") -> None:
        self.detail = detail
        self.advice = advice
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """One sentence: the docstring of the class, then what it happened to."""
        title = (self.__doc__ or "").strip()
        if not self.detail:
            return title
        return f"{title}: {self.detail}" if self.tells_class else self.detail


class UsageError(ScoutError):
    """That cannot be done as asked"""

    exit_code = 2


class Transient(ScoutError):
    """It did not work this time"""

    tells_class = False


class Later(Transient):
    """Not now"""

    def __init__(self, detail: str = "", *, wait_seconds: float, advice: str = "") -> None:
        self.wait_seconds = wait_seconds
        super().__init__(detail, advice=advice)


class Permanent(ScoutError):
    """It cannot work as it is"""

    tells_class = False


class BadGguf(Permanent):
    """This is no sound GGUF file"""


class StaleLease(ScoutError):
    """The job was taken over by another worker"""


class Stopped(ScoutError):
    """The job was asked to stop"""


class JobFailure(ScoutError):
    """The job failed"""

    # `ending` is how its process ended, in words; `lines` are the last of its log.

    def __init__(
        self,
        detail: str = "",
        *,
        failure_class: str,
        blame: Blame,
        phase: str = "",
        advice: str = "",
        ending: str = "",
        lines: Sequence[str] = (),
    ) -> None:
        self.failure_class = failure_class
        self.blame = blame
        self.phase = phase
        self.ending = ending
        self.lines = tuple(lines)
        super().__init__(detail, advice=advice)


UNKNOWN = "unknown"
"""The class of a failure that no rule of its family knows."""


def is_unexplained(failure_class: str) -> bool:
    """Whether a person should read the log: nothing in it was understood."""
    crashed = failure_class.startswith(("crash_", "http_5"))
    return crashed or failure_class in (UNKNOWN, "exit", "error_event", "connection_lost", "bug")


NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Numbers of system errors that mean: it does not fit on this disk."""


def disk_full(
    detail: str,
    *,
    phase: str = "",
    advice: str = "free disk space on the worker, then retry the job",
) -> JobFailure:
    """The failure that blames no engine: there is no room."""
    return JobFailure(
        detail,
        failure_class="disk_full",
        blame=Blame.INFRASTRUCTURE,
        phase=phase,
        advice=advice,
    )


SHOWN_WORDS = 12


def did_you_mean(
    word: str,
    known: Iterable[str],
    *,
    none: str = "none is known yet: forkscout --help shows how to begin",
    listed_by: str = "",
    most: int = SHOWN_WORDS,
) -> str:
    """Advice for a word nobody knows: the nearest right one, or all of them when they are few.

    `none` is what to do where there is no right word yet, `listed_by` a command that shows all.
    Case and punctuation count last: `llamacpp` means `llama.cpp`, not `xllamacpp`.
    """
    words = sorted(set(known))
    if not words:
        return none
    same = [each for each in words if _letters(each) and _letters(each) == _letters(word)]
    near = same or difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    shown = ", ".join(words[:most])
    if near:
        return f"did you mean {near[0]!r}?"
    if len(words) <= most:
        return f"known are {shown}"
    where = f": {listed_by}" if listed_by else ""
    return f"known are {shown} and {len(words) - most} more{where}"


def _letters(word: str) -> str:
    return "".join(each for each in word.lower() if each.isalnum())
