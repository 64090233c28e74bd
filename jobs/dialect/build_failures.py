"""What ends a build, whose fault each is and what to do: one table, and its order decides.

A rule counts in its phases alone. General rules only say that something did not compile: they
count where no other rule knows any line.
"""

from __future__ import annotations

from jobs.dialect.failure_rule import CONFIGURATION, ENGINE, INFRASTRUCTURE, rule
from jobs.dialect.image_recipe import BASE, IMAGE

FETCH = "fetch"
CONFIGURE, COMPILE, INSTALL = "configure", "compile", "install"
MAKING = (CONFIGURE, COMPILE, INSTALL, IMAGE)
ENGINE_STEPS = (BASE, IMAGE, "container", "copy")

CAUSES = (
    rule(
        "disk_full",
        r"No space left on device|Disk quota exceeded",
        INFRASTRUCTURE,
        "Free disk space on the worker, then retry the job.",
    ),
    rule(
        "build_oom",
        r"Killed signal terminated program"
        r"|\bKilled\b.*(?:cc1plus|cicc|ptxas|nvcc)"
        r"|(?:cc1plus|cicc|ptxas|nvcc)\b.*\b[Kk]illed\b"
        r"|^Killed$"
        r"|(?:configure|compile) was ended by SIGKILL"
        r"|^The command '.*' returned a non-zero code: 137$",
        INFRASTRUCTURE,
        "Give the build more memory or fewer parallel jobs.",
    ),
    rule(
        "ref_missing",
        r"couldn't find remote ref |upload-pack: not our ref |Remote branch \S+ not found"
        r"|pathspec '.*' did not match any file|unknown revision or path not in the working tree",
        CONFIGURATION,
        "The tag, branch or commit is gone from the repository: name a commit that is there.",
        phases=(FETCH,),
    ),
    rule(
        "fetch_failed",
        r"Could not resolve host|Temporary failure in name resolution|Network is unreachable"
        r"|Failed to connect to |[Cc]onnection (?:refused|reset|timed out)|(?:early|unexpected) EOF"
        r"|dial tcp|i/o timeout|TLS handshake timeout|toomanyrequests|unexpected HTTP status: 5",
        INFRASTRUCTURE,
        "Look at the network of the worker; the job is tried again by itself.",
        phases=(FETCH, BASE),
    ),
    rule(
        "engine_unreachable",
        r"Cannot connect to the Docker daemon|error during connect: ",
        INFRASTRUCTURE,
        "Start the container engine on the worker, and look at its own log.",
        phases=ENGINE_STEPS,
    ),
    rule(
        "image_missing",
        r"manifest unknown|manifest for \S+ not found|pull access denied|repository does not exist"
        r"|[Nn]o such image|Could not find the file /app in container",
        CONFIGURATION,
        "The image or its /app is not there: name one by the digest that its registry shows.",
        phases=ENGINE_STEPS,
    ),
    rule(
        "base_incomplete",
        r"^E: (?:Unable to locate package|Failed to fetch|Package '.*' has no installation)",
        CONFIGURATION,
        "The build has no network: bring these packages into the base images, then pin those.",
        phases=(IMAGE,),
    ),
    rule(
        "network_refused",
        r"Could ?n[o']t resolve host|Temporary failure in name resolution|Network is unreachable"
        r"|Failed to connect to \S+ port|unable to access 'https?://"
        r"|EAI_AGAIN|Could not connect to server",
        CONFIGURATION,
        "A build has no network: switch off the part that downloads with a build option.",
        phases=MAKING,
    ),
    rule(
        "submodule_missing",
        r"does not contain a CMakeLists\.txt file|No url found for submodule path"
        r"|git submodule (?:update|init)|[Ss]ubmodules? (?:\S+ )?(?:is|are) (?:missing|not )",
        CONFIGURATION,
        "Submodules are left empty: switch off the part that needs them with a build option.",
        phases=MAKING,
    ),
    rule(
        "tag_missing",
        r"No names found, cannot describe anything|No tags can describe"
        r"|[Cc](?:ould not|annot) (?:determine|get|find|detect) (?:the |a )?(?:\w+ )?"
        r"(?:version|tag|commit) (?:from|with|using|in) git",
        CONFIGURATION,
        "The source comes without its history: give the version by a build option.",
        phases=MAKING,
    ),
    rule(
        "ui_assets",
        r"missing required asset\(s\): ",
        CONFIGURATION,
        "Build with the web UI switched off.",
    ),
    rule(
        "nvcc_arch",
        r"Unsupported gpu architecture 'compute_\w+'",
        INFRASTRUCTURE,
        "Build with a CUDA toolkit that knows this architecture.",
    ),
    rule(
        "link_stub",
        r"libcuda\.so\.1, needed by .* not found \(try using -rpath",
        INFRASTRUCTURE,
        "Add the CUDA stubs folder to the linker's search path or build with GGML_CUDA_NO_VMM.",
    ),
    rule(
        "link_vmm",
        r"undefined reference to [`'\"]cuMem\w+",
        ENGINE,
        "Build with GGML_CUDA_NO_VMM=ON or a revision that links the driver library.",
    ),
    rule(
        "tool_missing",
        r"No CMAKE_\w+_COMPILER could be found|CMAKE_\w+_COMPILER-NOTFOUND"
        r"|CMake [0-9.]+ or higher is required|CMake was unable to find a build program"
        r"|(?:cmake|ninja|make|nvcc|c\+\+|git): (?:command )?not found",
        INFRASTRUCTURE,
        "Install the tool that the line names on the worker, in the version it asks for.",
        phases=MAKING,
    ),
    rule(
        "compiler_crash",
        r"internal compiler error|Please submit a full bug report",
        INFRASTRUCTURE,
        "Use another version of the compiler; a machine with bad memory crashes it too.",
        phases=MAKING,
    ),
    rule(
        "wrong_machine",
        r"cannot execute binary file|Exec format error|was ended by SIGILL",
        CONFIGURATION,
        "What was built is not for this machine: build for its processor.",
    ),
)
GENERAL = (
    rule(
        "compile_error",
        r"\S[:(]\d+(?::\d+:|\):) (?:fatal )?error\b",
        ENGINE,
        "Report it to the fork with the compiler's version; another compiler may accept it.",
        general=True,
    ),
    rule(
        "link_error",
        r"undefined reference to |ld: cannot find -l|collect2: error: ld returned",
        ENGINE,
        "Report it to the fork with the linker's lines.",
        general=True,
    ),
    rule(
        "image_error",
        r"^The command '.*' returned a non-zero code: \d+$|^failed to reach build target ",
        ENGINE,
        "Read the lines before it; a tool that the base images lack is named there.",
        general=True,
    ),
    rule(
        "configure_error",
        r"CMake Error\b",
        ENGINE,
        "Read the lines after it; a missing tool or library of this machine is named there.",
        general=True,
    ),
)
BUILDING = (*CAUSES, *GENERAL)

LIMITS = (
    rule(
        "timeout",
        r"took longer than [0-9.e+]+ s$",
        CONFIGURATION,
        "The limit is ours and no fault of the fork: allow more time if it still made progress.",
    ),
    rule(
        "silent",
        r"said nothing for [0-9.e+]+ s$",
        ENGINE,
        "It hangs or waits for input; the last line of the log says where.",
    ),
    rule(
        "memory_limit",
        r"used more than \S+ GiB of memory$",
        INFRASTRUCTURE,
        "Give the build more memory or fewer parallel jobs.",
    ),
    rule(
        "process_limit",
        r"started more than \d+ processes$",
        ENGINE,
        "Read the log for what multiplies; no honest build needs so many.",
    ),
    rule(
        "file_limit",
        r"was ended by SIGXFSZ$",
        ENGINE,
        "It wrote a file larger than the limit for one file: read the log for which.",
    ),
    rule(
        "cpu_limit",
        r"was ended by SIGXCPU$",
        CONFIGURATION,
        "The limit is ours and says nothing of the fork: allow more processor time.",
    ),
)
"""What a worker ends a step for, by the words it says; nothing of it stands in the step's log."""
