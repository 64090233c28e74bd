"""What `forkscout fit` and `forkscout pair` say of the models of one autumn, as commands say it.

Run from the top folder: `.venv/bin/python tests/benchmarks/show_models.py`. It writes headers of
the public shapes and sizes (the data are holes) into a folder of its own, serves the one that is
asked over HTTP on loopback, and prints each command with its answer, exit code and what was read.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support import gguf_files as files  # noqa: E402
from support.range_server import RangeServer  # noqa: E402
from support.shapes import (  # noqa: E402
    DRAFTER_Q8_0_BYTES,
    MMPROJ_BYTES,
    Q4_K_M_BYTES,
    UD_Q3_K_XL_BYTES,
)

from jobs.gguf.tensor_types import TENSOR_TYPES, stored_bytes  # noqa: E402

NUMBERS = {each.name: number for number, each in TENSOR_TYPES.items()}
Q4_K, Q3_K, Q8_0, Q6_K = (NUMBERS[name] for name in ("Q4_K", "Q3_K", "Q8_0", "Q6_K"))
COARSER, FINER = {Q4_K: Q3_K, Q8_0: Q6_K}, {Q4_K: Q6_K}

TARGET, DRAFTER = "Qwen3.6-27B-UD-Q3_K_XL.gguf", "dflash-draft-3.6-q8_0.gguf"
PROJECTOR, PLAIN = "mmproj-F16.gguf", "Qwen3.6-27B-Q4_K_M.gguf"
BAKED = "Qwen3.6-27B-MTP-UD-Q3_K_XL.gguf"
BEELLAMA = ("--kv", "turbo3", "--engine", "beellama@v0.1.2", "--cross-context", "1024")
PAIRED = ("--target", TARGET, "--drafter", DRAFTER, "--gpu", "24GiB")
OUTCOMES = {
    "ran: buun, Q4_K_M, 32K": (
        *("--target", PLAIN, "--drafter", DRAFTER, "--gpu", "24GiB"),
        *("--context", "32768", "--ubatch", "256", "--engine", "buun@2026-05-01"),
    ),
    "ran: beellama, 200K with vision": (
        *PAIRED, "--mmproj", PROJECTOR, "--context", "200000", "--ubatch", "2048", *BEELLAMA
    ),
    "ran: beellama, 262K of text": (*PAIRED, "--context", "262144", "--ubatch", "256", *BEELLAMA),
    "ran out of memory: beellama, 262K with vision": (
        *PAIRED, "--mmproj", PROJECTOR, "--context", "262144", "--ubatch", "2048", *BEELLAMA
    ),
}  # fmt: skip


def sized(lines: Iterable[files.Line], total: int) -> list[files.Line]:
    """The same tensors, some in a neighbouring type, so that together they have so many bytes."""
    found = list(lines)
    lacking = total - sum(_bytes(dims, kind) for _, dims, kind in found)
    others = COARSER if lacking < 0 else FINER
    for at, (name, dims, kind) in enumerate(found):
        change = _bytes(dims, others.get(kind, kind)) - _bytes(dims, kind)
        if "ffn" in name and abs(lacking - change) < abs(lacking):
            lacking -= change
            found[at] = (name, dims, others[kind])
    return found


def _bytes(dims: tuple[int, ...], kind: int) -> int:
    count = 1
    for size in dims:
        count *= size
    return stored_bytes(kind, count) or 0


def drafter_lines() -> Iterable[files.Line]:
    """58 tensors: five layers of a dense model and what joins the target's layers."""
    width, hidden = 5120, 17_408
    yield "dflash_fc.weight", (5 * width, width), Q8_0
    yield "dflash_hidden_norm.weight", (width,), files.F32
    yield "output_norm.weight", (width,), files.F32
    large = {
        "attn_q": (width, 4096), "attn_k": (width, 1024), "attn_v": (width, 1024),
        "attn_output": (4096, width), "ffn_gate": (width, hidden), "ffn_up": (width, hidden),
        "ffn_down": (hidden, width),
    }  # fmt: skip
    for layer in range(5):
        for name, dims in large.items():
            yield f"blk.{layer}.{name}.weight", dims, Q8_0
        for name in ("attn_norm", "ffn_norm", "attn_q_norm", "attn_k_norm"):
            yield f"blk.{layer}.{name}.weight", (width if "k_n" not in name else 128,), files.F32


def write_models(folder: Path) -> None:
    """All five, with holes for data."""
    vision = [("v.patch_embd.weight", (16, 16, 3, 1152), files.F16)]
    rest = (MMPROJ_BYTES - _bytes(vision[0][1], files.F16)) // 2
    models = {
        PLAIN: files.qwen36(lines=lambda own: sized(own, Q4_K_M_BYTES)),
        TARGET: files.qwen36(lines=lambda own: sized(own, UD_Q3_K_XL_BYTES)),
        DRAFTER: files.dflash(lines=sized(drafter_lines(), DRAFTER_Q8_0_BYTES)),
        PROJECTOR: files.projector(
            lines=[*vision, ("v.rest.weight", (rest,), files.F16)], feed_forward_length=4304
        ),
    }
    for name, file in models.items():
        (folder / name).write_bytes(file.header)
        os.truncate(folder / name, file.size_bytes)


def shown(folder: Path, *words: str) -> None:
    """One command as a person types it, and all it says."""
    program = Path(sys.executable).with_name("forkscout")
    environment = {
        **os.environ, "FORKSCOUT_HOME": str(folder / "var"), "NO_PROXY": "127.0.0.1",
        "COLUMNS": "100",
    }  # fmt: skip
    done = subprocess.run(
        [program, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    say(f"$ forkscout {' '.join(words)}\n{done.stdout}{done.stderr}exit {done.returncode}\n")


def say(words: str) -> None:
    """One line or more, at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main() -> None:
    """Four outcomes, then the pair that was refused."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_models(folder)
        for name, words in OUTCOMES.items():
            say(f"== {name}")
            shown(folder, "fit", *words)
        say("== a target with MTP heads baked in, over HTTP")
        with RangeServer(files.qwen36(heads=1)) as server:
            shown(
                folder, "pair", "--target", f"{server.url}/{BAKED}", "--engine", "beellama@v0.1.2"
            )
        ranges = [headers["Range"] for _, headers in server.asked]
        say(f"asked of the server: {ranges}")


if __name__ == "__main__":
    main()
