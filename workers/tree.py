"""What belongs to one started step, and the bounds its kernel keeps; it starts nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import psutil

from jobs.errors import JobFailure
from workers import processes
from workers.cgroups import Group


class Tree(Protocol):
    """The processes of one step, wherever they run."""

    @property
    def first(self) -> int:
        """The process all of the step's own descend from."""

    def members(self) -> list[psutil.Process]:
        """Every living process of the step."""

    def owns(self, pid: int) -> bool:
        """Whether this process of our own pid namespace belongs to the step."""

    def struck(self, *, ended: bool = False) -> str | None:
        """`memory` or `processes` where the kernel enforced that bound.

        `ended` asks again, and more, after the end.
        """

    def start_fault(self, code: int) -> JobFailure | None:
        """Why the step never began although something was started, None where it did begin."""

    def kill(self) -> None:
        """End everything. The first process must not be reaped yet."""

    def close(self) -> None:
        """Take away what held the step; nothing of it lives any more."""


@dataclass(frozen=True)
class HostTree:
    """A tree among the processes of this machine, in a group of its own where there is one."""

    first: int
    marker: str
    group: Group | None = None

    def members(self) -> list[psutil.Process]:
        found = {p.pid: p for p in processes.members(self.first, self.marker)}
        grouped = self.group.members() if self.group else []
        found.update({p.pid: p for p in processes.living(grouped)})
        return list(found.values())

    def owns(self, pid: int) -> bool:
        grouped = self.group is not None and pid in self.group.members()
        return grouped or processes.owns(self.first, self.marker, pid)

    def struck(self, *, ended: bool = False) -> str | None:
        return self.group.struck() if self.group else None

    def start_fault(self, code: int) -> JobFailure | None:
        return None

    def kill(self) -> None:
        processes.end_all(self.members)

    def close(self) -> None:
        if self.group:
            self.group.remove()
