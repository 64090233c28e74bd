"""Which mapped code is strange, from text of the kernel's shape."""

from __future__ import annotations

import pytest

from workers.loaded import strangers

ALLOWED = ("/usr", "/lib", "/artifact")


def line(path: str, mode: str = "r-xp") -> str:
    return f"7f0000000000-7f0000001000 {mode} 00000000 fe:00 123                  {path}\n"


@pytest.mark.parametrize(
    "path",
    [
        "/artifact/llama-server",
        "/artifact/lib x.so",
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/memfd:nvidia (deleted)",
        "",
        "[vdso]",
        "/dev/nvidia0",
    ],
)
def test_code_of_artifact_system_and_driver_is_known(path: str) -> None:
    """What was built, what the machine has, and what a driver makes in memory."""
    assert strangers(line(path), ALLOWED) == []


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/tmp/evil.so", "/tmp/evil.so"),
        ("/run/engine/x.so", "/run/engine/x.so"),
        ("/artifacts/x.so", "/artifacts/x.so"),
        ("/artifact/llama-server (deleted)", "/artifact/llama-server"),
        ("/artifact/../tmp/x", "/artifact/../tmp/x"),
    ],
)
def test_code_from_elsewhere_is_strange(path: str, found: str) -> None:
    """Also a file that was replaced after it was loaded."""
    assert strangers(line(path), ALLOWED) == [found]


def test_data_is_no_code() -> None:
    """Weights are mapped to be read, not to be run."""
    assert strangers(line("/weights/target.gguf", "r--s") + line("/tmp/x", "rw-p"), ALLOWED) == []
