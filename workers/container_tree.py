"""The processes of one container and their end, also when this worker dies; it decides nothing."""

from __future__ import annotations

import contextlib
import os
import subprocess
from functools import cached_property

import psutil

from jobs.errors import JobFailure
from workers import processes
from workers.cgroups import Group, container_group
from workers.engine_client import EngineTool, engine_fault

NOT_STARTED = (125, 126, 127)
NEVER = "0001-"
REMOVALS = 3
GUARD = 'read -r _ || exec "$@"'
"""Waits for a word from the worker; at the worker's death it gets none and acts."""


class ContainerTree:
    """One container that `docker run`, process `tool_pid`, holds open."""

    def __init__(self, tool: EngineTool, name: str, tool_pid: int) -> None:
        self._tool = tool
        self._name = name
        self._tool_pid = tool_pid
        self._first: psutil.Process | None = None
        self._struck: str | None = None
        reader, self._to_guard = os.pipe()
        try:
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", GUARD, "sh", *tool.command, "rm", "--force", "--volumes", name],
                stdin=reader,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=tool.environment,
                start_new_session=True,
            )
        finally:
            os.close(reader)

    @property
    def first(self) -> int:
        """The container's first process; `docker run` itself until that is there."""
        found = self._find_first()
        return found.pid if found else self._tool_pid

    def members(self) -> list[psutil.Process]:
        tops = processes.living([self._tool_pid])
        if (first := self._find_first()) is not None and first.is_running():
            tops.append(first)
        return list({p.pid: p for top in tops for p in processes.below(top.pid)}.values())

    def owns(self, pid: int) -> bool:
        return any(process.pid == pid for process in self.members())

    def struck(self, *, ended: bool = False) -> str | None:
        if self._struck is None and self._group is not None:
            self._struck = self._group.struck()
        if self._struck is None and ended:
            with contextlib.suppress(JobFailure):
                if self._inspect("{{.State.OOMKilled}}") == "true":
                    self._struck = "memory"
        return self._struck

    def start_fault(self, code: int) -> JobFailure | None:
        if code not in NOT_STARTED:
            return None
        with contextlib.suppress(JobFailure):
            if not self._inspect("{{.State.StartedAt}}").startswith(NEVER):
                return None
        return engine_fault("the container engine did not start the step; the log says why")

    def kill(self) -> None:
        self._remove()
        processes.end_all(self.members)

    def close(self) -> None:
        for _ in range(REMOVALS):  # the engine may have been about to make it
            if not self._tool.says("container", "inspect", self._name):
                break
            self._remove()
        else:
            raise engine_fault(f"the container {self._name} does not go away")
        os.write(self._to_guard, b"\n")
        os.close(self._to_guard)
        self._guard.wait()

    def _remove(self) -> None:
        self._tool.says("rm", "--force", "--volumes", self._name)

    def _find_first(self) -> psutil.Process | None:
        if self._first is None:
            with contextlib.suppress(JobFailure, ValueError, psutil.NoSuchProcess):
                if pid := int(self._inspect("{{.State.Pid}}")):
                    self._first = psutil.Process(pid)
        return self._first

    @cached_property
    def _limits_seen(self) -> Group | None:
        return container_group(self.first)

    @property
    def _group(self) -> Group | None:
        return self._limits_seen if self._find_first() else None

    def _inspect(self, wanted: str) -> str:
        return self._tool.ask("container", "inspect", "--format", wanted, self._name)
