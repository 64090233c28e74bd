"""Facts about this machine that go with every result; refuses names, users and paths."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from workers.cards import card_facts

HARDWARE = ("architecture", "cpu_model", "physical_cores", "logical_cores", "memory_gib")
CPU_FOLDER = Path("/sys/devices/system/cpu")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
CPU_INFO = Path("/proc/cpuinfo")


def machine_facts() -> dict[str, Any]:
    """What a reader of a result must know of the machine; everything here goes public."""
    return {
        **card_facts(),
        "architecture": platform.machine(),
        "cpu_model": cpu_model(_text(CPU_INFO)),
        "physical_cores": psutil.cpu_count(logical=False),
        "logical_cores": psutil.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "kernel": kernel_version(platform.release()),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "governor": _text(CPU_FOLDER / "cpu0/cpufreq/scaling_governor").strip() or None,
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "boot": hashlib.sha256(_text(BOOT_ID).encode()).hexdigest()[:12],
    }


def fingerprint(facts: Mapping[str, Any]) -> str:
    """Names the hardware; the same after a reboot or an update, other with another processor."""
    named = {name: facts.get(name) for name in HARDWARE}
    if facts.get("cards"):
        named["cards"] = facts["cards"]
    hardware = json.dumps(named, sort_keys=True)
    return hashlib.sha256(hardware.encode()).hexdigest()[:16]


ENVIRONMENT = ("kernel", "driver", "power_limits_w")
"""What may change below a build without anybody touching it; with the hardware's fingerprint."""


def environment_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a golden's known result depends on besides the build; a change is nobody's fault."""
    known = {name: facts[name] for name in ENVIRONMENT if facts.get(name) is not None}
    return {"hardware": fingerprint(facts), **known}


def cpu_model(cpuinfo: str) -> str:
    """The processor's name as /proc/cpuinfo gives it, on x86 and on what is like it."""
    for name in ("model name", "Hardware", "cpu model", "CPU part"):
        found = re.search(rf"^{name}\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
        if found:
            return " ".join(found[1].split())
    return "unknown"


def kernel_version(release: str) -> str:
    """The numbers of a kernel release; what follows them may hold the name of a machine."""
    found = re.match(r"\d+(\.\d+)*", release)
    return found[0] if found else "unknown"


def tool_version(name: str) -> str | None:
    """The first line a tool on the path says of its version; None where there is none."""
    program = shutil.which(name)
    if program is None:
        return None
    answer = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=False, timeout=20
    )
    return answer.stdout.strip().partition("\n")[0] or None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
