"""What a failed build's lines mean, whose fault each is and what to do; the order decides."""

from __future__ import annotations

from jobs.dialect import failure_rule as phases
from jobs.dialect.failure_rule import CONFIGURATION, ENGINE, INFRASTRUCTURE, rule

BUILDING = (
    rule(
        "ui_assets",
        r"missing required asset\(s\): ",
        phases.BUILD,
        CONFIGURATION,
        "Build with the web UI switched off.",
    ),
    rule(
        "nvcc_arch",
        r"Unsupported gpu architecture 'compute_\w+'",
        phases.BUILD,
        INFRASTRUCTURE,
        "Build with a CUDA toolkit that knows this architecture.",
    ),
    rule(
        "build_oom",
        r"Killed signal terminated program"
        r"|\bKilled\b.*(?:cc1plus|cicc|ptxas|nvcc)"
        r"|(?:cc1plus|cicc|ptxas|nvcc)\b.*\b[Kk]illed\b"
        r"|^Killed$",
        phases.BUILD,
        INFRASTRUCTURE,
        "Give the build more memory or fewer parallel jobs.",
    ),
    rule(
        "compile_error",
        r"\S[:(]\d+(?::\d+:|\):) (?:fatal )?error\b",
        phases.BUILD,
        ENGINE,
        "Report it to the fork with the compiler's version; another compiler may accept it.",
    ),
    rule(
        "link_error",
        r"undefined reference to |ld: cannot find -l|collect2: error: ld returned",
        phases.BUILD,
        ENGINE,
        "Report it to the fork with the linker's lines.",
    ),
    rule(
        "configure_error",
        r"CMake Error\b",
        phases.BUILD,
        ENGINE,
        "Read the lines after it; a missing tool or library of this machine is named there.",
    ),
)
