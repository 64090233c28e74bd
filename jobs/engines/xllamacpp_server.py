"""Starts the server of an installed xllamacpp release as one JSON argument says; knows only that.

Run by the interpreter of the build's own environment, never imported by ours.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

KNOWN = frozenset(
    (
        *("host", "model", "alias", "context", "threads", "batch", "ubatch"),
        *("gpu_layers", "kv", "flash_attention", "describe"),
        *("speculation", "drafter", "projector", "thinking"),
    )
)
CONTAINERS = (list, set, tuple)
TELLS_MEMORY = 4
"""The level that tells sizes of buffers, once for each request more and never for a token.

In releases without JSON logs the same number means debugging, which logs every token.
"""


class Refused(Exception):
    """This release cannot do what was asked."""


def say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def put(target: Any, name: str, value: Any, *, needed: bool = False) -> None:
    """Set an attribute where this release has it; a missing one is refused only where needed."""
    if not hasattr(target, name):
        if needed:
            raise Refused(f"this release of xllamacpp has no setting {name}")
        return
    setattr(target, name, value)


def member(target: Any, name: str, word: str) -> Any:
    """The enum member of attribute `name` whose name ends in `_word`."""
    kind = type(getattr(target, name, None))
    for key, value in getattr(kind, "__members__", {}).items():
        if key.endswith("_" + word.upper()):
            return value
    raise Refused(f"this release of xllamacpp has no {name} {word}")


def describe(module: Any) -> None:
    """Print each setting and, for enums, the words it takes."""
    params = module.CommonParams()
    for name in sorted(dir(params)):
        if name.startswith("_") or callable(getattr(params, name)):
            continue
        kind = type(getattr(params, name))
        members = getattr(kind, "__members__", {})
        words = " ".join(sorted(members))
        say(f"setting {name} {kind.__name__} {words}".rstrip())


def apply(params: Any, wanted: dict[str, Any]) -> None:
    """Every asked setting, and everything that would make two runs differ switched off."""
    if hasattr(params, "hostname"):
        params.hostname = wanted["host"]
    else:
        put(params, "hostnames", [wanted["host"]], needed=True)
    params.model.path = wanted["model"]
    put(params, "n_ctx", wanted["context"], needed=True)
    put(params, "n_parallel", 1, needed=True)
    alias = wanted["alias"]
    takes_several = isinstance(getattr(params, "model_alias", None), CONTAINERS)
    put(params, "model_alias", {alias} if takes_several else alias, needed=True)
    put(params, "n_batch", wanted["batch"], needed=True)
    put(params, "n_ubatch", wanted["ubatch"], needed=True)
    put(params, "n_gpu_layers", wanted["gpu_layers"], needed=True)
    if wanted["kv"] != "f16":
        for name in ("cache_type_k", "cache_type_v"):
            put(params, name, member(params, name, wanted["kv"]), needed=True)
    words = {"on": "ENABLED", "off": "DISABLED", "auto": "AUTO"}
    if hasattr(params, "flash_attn_type"):
        word = words[wanted["flash_attention"]]
        params.flash_attn_type = member(params, "flash_attn_type", word)
    for pool in ("cpuparams", "cpuparams_batch"):
        if hasattr(params, pool):
            put(getattr(params, pool), "n_threads", wanted["threads"])
    for name, value in (
        ("endpoint_slots", True),
        ("endpoint_props", True),
        ("cache_ram_mib", 0),
        ("n_ctx_checkpoints", 0),
        ("fit_params", False),
        ("enable_reasoning", int(bool(wanted.get("thinking")))),
        ("ui", False),
        ("webui", False),
        ("offline", True),
    ):
        put(params, name, value)
    if hasattr(params, "load_mode"):
        params.load_mode = member(params, "load_mode", "NONE")
    put(params, "use_mmap", False)
    if hasattr(params, "log_json"):
        put(params, "verbosity", TELLS_MEMORY)


def draft(module: Any, params: Any, wanted: dict[str, Any]) -> None:
    """Let the drafter draft, in the first of the wanted ways that this release knows."""
    speculative: Any = getattr(params, "speculative", None)
    kinds = getattr(getattr(module, "common_speculative_type", None), "__members__", {})
    for word in wanted["speculation"].split():
        name = "COMMON_SPECULATIVE_TYPE_" + word.upper().replace("-", "_")
        if name in kinds and hasattr(speculative, "types"):
            speculative.types = [kinds[name]]
            break
    else:
        raise Refused(f"this release of xllamacpp has no speculation {wanted['speculation']}")
    if wanted.get("drafter"):
        own: Any = getattr(speculative, "draft", None)
        model = getattr(own, "mparams", None)
        if model is None:
            raise Refused("this release of xllamacpp has no setting draft.mparams")
        model.path = wanted["drafter"]
        own.mparams = model
        put(own, "n_gpu_layers", wanted["gpu_layers"])
        for pool in ("cpuparams", "cpuparams_batch"):
            if hasattr(own, pool):
                put(getattr(own, pool), "n_threads", wanted["threads"])


def main(arguments: list[str]) -> int:
    """0 after a description, 2 for a wrong argument, 3 for what this release cannot do."""
    try:
        wanted = json.loads(arguments[0])
    except (IndexError, ValueError):
        wanted = None
    if not isinstance(wanted, dict) or set(wanted) - KNOWN:
        unknown = ", ".join(sorted(set(wanted) - KNOWN)) if isinstance(wanted, dict) else "no JSON"
        say(f"error: one JSON object of known settings is needed; not known: {unknown}")
        return 2
    import xllamacpp

    if wanted.get("describe"):
        describe(xllamacpp)
        return 0
    params = xllamacpp.CommonParams()
    try:
        apply(params, wanted)
        if wanted.get("speculation"):
            draft(xllamacpp, params, wanted)
        if wanted.get("projector"):
            params.mmproj.path = wanted["projector"]
    except Refused as refusal:
        say(f"error: {refusal}")
        return 3
    server = xllamacpp.Server(params)
    say(f"server is listening on {server.listening_address}")
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
