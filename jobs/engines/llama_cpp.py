"""The llama.cpp family, built from source and launched by its help text; it runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jobs.dialect import (
    argument_source,
    asking,
    build_failures,
    failures,
    helptext,
    image_recipe,
    logs,
    measuring,
    memory_log,
    settings,
)
from jobs.engines.base import DRAFT, SPECULATIONS, BuildPlaces, Launch, intents, unsupported
from jobs.model import BuildTarget, FailureRule, Flags, Revision, Step

request = asking.request
measure = measuring.measure
read_log = logs.read_log
read_memory = memory_log.read_memory
read_settings = settings.read_settings
read_help = helptext.read_help
read_options = helptext.read_options
read_source = argument_source.read_source

FAMILY = "llama.cpp"
VIA = "cmake"
RECIPE = 2
FOREIGN_SOURCE = True
LAUNCHER: str | None = None
FAILURES: Sequence[FailureRule] = failures.FAILURES
BUILD_FAILURES: Sequence[FailureRule] = build_failures.BUILDING
OPTION_SOURCES: Sequence[str] = argument_source.SOURCES
SPARSE_PATTERNS: Sequence[str] = (
    "/*",
    "!*.md",
    "!/.github/",
    "!/.devops/",
    "!/ci/",
    "!/models/",
    "!/media/",
    "!/docs/",
    "!/tests/",
    "!/examples/",
    "!/tools/server/public/",
    "!/tools/server/webui/",
    "!/tools/ui/",
    "!/benches/",
    "!/gguf-py/",
)
DEFINITIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DGGML_NATIVE=OFF",
    "-DGGML_CCACHE=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_WEBUI=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_CURL=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DBUILD_SHARED_LIBS=ON",
    "-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON",
)
TAKE_OUT = """
server=$(find "$1" -type f -name llama-server | head -n 1)
[ -n "$server" ] || { echo "error: this file holds no llama-server"; exit 1; }
cd "$(dirname "$server")" || exit 1
find . -maxdepth 1 '(' -name llama-server -o -name 'lib*.so*' ')' -exec cp -a -t "$2" -- {} +
chmod 755 "$2/llama-server"
"""
COMPILE_SECONDS = 3600.0
CUDA_COMPILE_SECONDS = 4 * 3600.0  # attention kernels alone took forks more than an hour
OPTION = re.compile(r"-D[A-Za-z][A-Za-z0-9_]*=[A-Za-z0-9_.,+\-]*")
ARCHITECTURE = re.compile(r"[0-9]{2,3}[af]?(-real|-virtual)?")

_OURS = (
    "-m --model -a --alias --host --port -c --ctx-size -np --parallel -t --threads -tb "
    "--threads-batch -ngl --gpu-layers --n-gpu-layers -ctk --cache-type-k -ctv "
    "--cache-type-v -b --batch-size -ub --ubatch-size -fa --flash-attn --api-key "
    "--api-key-file --log-file --log-disable -h --help --usage --version --list-devices "
    "--completion-bash -md --model-draft --spec-draft-model --spec-type -mm --mmproj "
)
OURS = frozenset(_OURS.split())
FIXED = (
    (("--fit", "-fit"), "off"),
    (("--cache-ram", "-cram"), "0"),
    (("--ctx-checkpoints", "--swa-checkpoints"), "0"),
    (("--reasoning-loop-guard",), "off"),
)
DRAFT_LAYERS = ("--gpu-layers-draft", "--n-gpu-layers-draft", "--spec-draft-ngl", "-ngld")
SWITCHES = (("--slots",), ("--no-webui", "--no-ui"), ("--offline",))


def build(revision: Revision, target: BuildTarget, places: BuildPlaces) -> Sequence[Step]:
    """Steps of the target's way; raises `unsupported` for one that this family does not have."""
    if target.via == VIA:
        return _compiled(revision, target, places)
    if target.via == "asset":
        return (_taken_out(places),)
    if target.via != image_recipe.VIA:
        raise unsupported(f"via {target.via!r}", advice="Use cmake, asset or docker.")
    pins = dict(target.pins)
    if wrong := image_recipe.wrong_pin(pins):
        raise unsupported(wrong, advice="See docs/builds.md for what a build via docker takes.")
    if pins.get("image"):
        return image_recipe.prebuilt_steps(
            work=places.work, output=places.output, name=places.image, image=pins["image"]
        )
    if target.options:
        raise unsupported(
            "a Dockerfile takes no build options", advice="Remove the options, or use via cmake."
        )
    if target.cuda_arch is not None:
        _check_architecture(target.cuda_arch)
    return image_recipe.dockerfile_steps(
        source=places.source,
        work=places.work,
        output=places.output,
        name=places.image,
        cuda_arch=target.cuda_arch,
        pins=pins,
    )


def _taken_out(places: BuildPlaces) -> Step:
    """The step that copies server and libraries out of an unpacked release."""
    words = (TAKE_OUT, "install", places.source, places.output)
    return Step("install", ("sh", "-c", *words), timeout_seconds=300)


def _compiled(revision: Revision, target: BuildTarget, places: BuildPlaces) -> Sequence[Step]:
    """Configure, compile `llama-server` alone, and copy it with its libraries."""
    prefix_maps = f"-ffile-prefix-map={places.source}=source -ffile-prefix-map={places.work}=work"
    configure = (
        "cmake",
        *("-S", places.source, "-B", places.work, "-G", places.generator),
        *DEFINITIONS,
        "-DLLAMA_BUILD_NUMBER=0",
        f"-DLLAMA_BUILD_COMMIT={revision.commit}",
        f"-DCMAKE_C_FLAGS={prefix_maps}",
        f"-DCMAKE_CXX_FLAGS={prefix_maps}",
        *_target_definitions(target),
    )
    limit_seconds = CUDA_COMPILE_SECONDS if target.cuda_arch else COMPILE_SECONDS
    return (
        Step("configure", configure, timeout_seconds=600),
        Step(
            "compile",
            (
                *("cmake", "--build", places.work, "--target", "llama-server"),
                *("--parallel", str(places.jobs)),
            ),
            timeout_seconds=limit_seconds,
            silence_seconds=limit_seconds / 2,
        ),
        Step(
            "install",
            (
                *("find", f"{places.work}/bin", "-maxdepth", "1"),
                *("(", "-name", "llama-server", "-o", "-name", "lib*.so*", ")"),
                *("-exec", "cp", "-a", "-t", places.output, "--", "{}", "+"),
            ),
            timeout_seconds=300,
        ),
    )


def _check_architecture(name: str) -> None:
    if not ARCHITECTURE.fullmatch(name):
        raise unsupported(f"CUDA architecture {name!r}", advice="Name one such as 120 or 86.")


def _target_definitions(target: BuildTarget) -> Iterator[str]:
    if target.cuda_arch is not None:
        _check_architecture(target.cuda_arch)
        yield "-DGGML_CUDA=ON"
        yield f"-DCMAKE_CUDA_ARCHITECTURES={target.cuda_arch}"
        yield "-DGGML_CUDA_NCCL=OFF"
    for option in target.options:
        if not OPTION.fullmatch(option):
            raise unsupported(
                f"build option {option!r}", advice="Write CMake options as -DNAME=VALUE."
            )
        yield option


def describe(*, artifact: str, launcher: str = "") -> Step:  # noqa: ARG001
    """The step that prints the help text of the built binary."""
    return Step("describe", (f"{artifact}/llama-server", "--help"), timeout_seconds=60)


def launch(launch: Launch, flags: Flags) -> Step:
    """The server's command in the words this build's help offers; all settings explicit."""
    asked = intents(launch)
    _check_own_words(launch, flags)
    return Step(
        "serve",
        (
            f"{launch.artifact}/llama-server",
            *("-m", launch.model_path),
            *("--host", launch.host),
            *("--alias", launch.alias),
            *("--ctx-size", str(launch.context_tokens)),
            *("--threads", str(launch.threads)),
            *_offered(flags, ("--threads-batch",), str(launch.threads)),
            *_offered(flags, ("--parallel", "-np"), "1"),
            *_needed(flags, ("--batch-size", "-b"), str(asked.batch), "batch"),
            *_needed(flags, ("--ubatch-size", "-ub"), str(asked.ubatch), "ubatch"),
            *_gpu_layers(launch, flags),
            *_drafting(launch, flags, asked.speculation),
            *_projecting(launch, flags),
            *_needed(flags, ("--cache-type-k", "-ctk"), asked.kv, "kv"),
            *_needed(flags, ("--cache-type-v", "-ctv"), asked.kv, "kv"),
            *_offered(flags, ("--flash-attn", "-fa"), asked.flash_attention),
            *_load_mode(flags),
            *_memory_lines(flags),
            *(word for names, value in FIXED for word in _offered(flags, names, value)),
            *_offered(flags, ("--reasoning",), "on" if launch.thinking else "off"),
            *(name for names in SWITCHES if (name := flags.first_of(*names))),
            *launch.flags,
        ),
        env={**launch.env, "GGML_NO_BACKTRACE": "1"},
    )


def _offered(flags: Flags, names: tuple[str, ...], value: str) -> tuple[str, ...]:
    """The flag with its value where this build has it and allows the value."""
    name = flags.first_of(*names)
    if name is None or value not in flags.choices.get(name, (value,)):
        return ()
    return (name, value)


def _needed(flags: Flags, names: tuple[str, ...], value: str, intent: str) -> tuple[str, ...]:
    """As `_offered`, but an intent that cannot be served is refused."""
    offered = _offered(flags, names, value)
    if offered:
        return offered
    name = flags.first_of(*names)
    allowed = ", ".join(flags.choices.get(name, ())) if name else ""
    raise unsupported(
        f"intent {intent} = {value} on this build",
        advice=f"Choose one of: {allowed}." if allowed else f"This build has no {names[0]}.",
    )


def _gpu_layers(launch: Launch, flags: Flags) -> tuple[str, ...]:
    names = ("--n-gpu-layers", "--gpu-layers", "-ngl")
    if launch.gpu_layers:
        return _needed(flags, names, str(launch.gpu_layers), "gpu_layers")
    return _offered(flags, names, "0")


def _drafting(launch: Launch, flags: Flags, speculation: str) -> Iterator[str]:
    """How this build is told to draft; before there were kinds, naming a drafter was enough.

    Forks keep a second sequence to fall back on: without one cache for both, each of them gets half
    of the context (seen with buun `1c4788192` and beellama `633cd34fb`).
    """
    if not speculation:
        return
    yield from filter(None, [flags.first_of("--kv-unified", "-kvu")])
    if launch.drafter_path:
        names = ("--model-draft", "--spec-draft-model", "-md")
        yield from _needed(flags, names, launch.drafter_path, "speculation")
        yield from _offered(flags, DRAFT_LAYERS, str(launch.gpu_layers))
    offered = flags.choices.get("--spec-type", ())
    word = next((each for each in SPECULATIONS[speculation] if each in offered), None)
    if word is not None:
        yield from ("--spec-type", word)
    elif speculation != DRAFT:
        raise unsupported(
            f"intent speculation = {speculation} on this build",
            advice=f"This build has {', '.join(offered) or 'no kinds of speculation'}.",
        )


def _projecting(launch: Launch, flags: Flags) -> tuple[str, ...]:
    if not launch.projector_path:
        return ()
    return _needed(flags, ("--mmproj", "-mm"), launch.projector_path, "vision")


def _load_mode(flags: Flags) -> tuple[str, ...]:
    """Weights read into memory, in the words of this build's age."""
    loaded = _offered(flags, ("--load-mode",), "none")
    switch = flags.first_of("--no-mmap")
    return loaded or ((switch,) if switch else ())


def _memory_lines(flags: Flags) -> tuple[str, ...]:
    """Sizes of buffers in the log: newer builds tell them from the level `trace` on only.

    Older ones tell them anyway, and their next level would log every token while it is measured.
    """
    name = flags.first_of("--verbosity", "--log-verbosity", "-lv")
    level = flags.log_levels.get("trace")
    return (name, level) if name and level else ()


def _check_own_words(launch: Launch, flags: Flags) -> None:
    """Refuse flags and variables this build does not know or that would undo ours."""
    for position, word in enumerate(launch.flags):
        if not helptext.SPELLING.fullmatch(word) or re.fullmatch(r"-[0-9.]+", word):
            continue
        name = word.replace("_", "-") if word.startswith("--") else word
        if name in OURS:
            raise unsupported(
                f"flag {word}, which every bench sets itself", advice="Ask for it as an intent."
            )
        if name not in flags.names:
            why = "was removed from" if name in flags.removed else "is unknown to"
            raise unsupported(
                f"flag {word} {why} this build", advice="Use a spelling of this build's --help."
            )
        value = launch.flags[position + 1] if position + 1 < len(launch.flags) else None
        allowed = flags.choices.get(name, ())
        if allowed and value is not None and value not in allowed:
            raise unsupported(
                f"flag {word} {value} on this build",
                advice=f"Choose one of: {', '.join(allowed)}.",
            )
    for variable in launch.env:
        if variable.startswith("LLAMA_"):
            raise unsupported(
                f"variable {variable}, a flag in disguise", advice="Write it as a flag instead."
            )
