"""The xllamacpp family and its launcher."""

from __future__ import annotations

import enum
import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from jobs.engines import xllamacpp, xllamacpp_server
from jobs.engines.base import BuildPlaces, Launch, classify
from jobs.engines.registry import FAMILIES, family
from jobs.errors import JobFailure, UsageError
from jobs.model import BuildTarget, Revision

REVISION = Revision("xllamacpp", "xllamacpp", "a" * 64, "2026.10.11549", "package")
PLACES = BuildPlaces("/wheels", "/work", "/out", python="/py")
LAUNCH = Launch(
    "/run/artifact", "/m.gguf", "/run/engine/e.sock", "ours", 2048, 2, launcher="/run/server.py"
)
HELP = """
setting hostnames list
setting n_ctx int
setting cache_type_k ggml_type GGML_TYPE_F16 GGML_TYPE_Q8_0
setting cache_type_v ggml_type GGML_TYPE_F16 GGML_TYPE_Q8_0
ggml_cuda_init: no device
"""
FLAGS = xllamacpp.read_help(HELP)


class CacheType(enum.IntEnum):
    GGML_TYPE_F16 = 1
    GGML_TYPE_Q8_0 = 8


class Attention(enum.IntEnum):
    LLAMA_FLASH_ATTN_TYPE_AUTO = -1
    LLAMA_FLASH_ATTN_TYPE_DISABLED = 0
    LLAMA_FLASH_ATTN_TYPE_ENABLED = 1


def params(**changes):
    """Settings of an imagined release."""
    settings = {
        "hostnames": [],
        "model": SimpleNamespace(path=""),
        "model_alias": set(),
        "n_ctx": 0,
        "n_parallel": 4,
        "n_batch": 0,
        "n_ubatch": 0,
        "n_gpu_layers": -1,
        "cache_type_k": CacheType.GGML_TYPE_F16,
        "cache_type_v": CacheType.GGML_TYPE_F16,
        "flash_attn_type": Attention.LLAMA_FLASH_ATTN_TYPE_AUTO,
        "cpuparams": SimpleNamespace(n_threads=-1),
        "fit_params": True,
        "cache_ram_mib": 8192,
    } | changes
    return SimpleNamespace(**{key: value for key, value in settings.items() if value is not ...})


def wanted(**intent):
    """The launcher's argument as the family writes it."""
    step = xllamacpp.launch(replace(LAUNCH, intent=intent), FLAGS)
    return json.loads(step.argv[-1])


def test_the_wheel_is_installed_without_network_or_traces():
    """The install step knows one folder and one exact version."""
    steps = xllamacpp.build(REVISION, BuildTarget("cpu", "wheel"), PLACES)
    assert [step.name for step in steps] == ["environment", "install", "tidy"]
    install = steps[1].argv
    assert install[-1] == "xllamacpp==2026.10.11549"
    assert {"--no-index", "--no-deps", "--no-compile", "--isolated"} < set(install)
    assert install[install.index("--find-links") + 1] == "/wheels"
    compile(steps[2].argv[-2], "tidy", "exec")


@pytest.mark.parametrize("label", ["", "-r evil", "1.0 --pre", "latest", "1.0;x"])
def test_a_strange_version_is_refused(label):
    """Only a version reaches pip's command line."""
    with pytest.raises(JobFailure, match="version"):
        xllamacpp.build(replace(REVISION, label=label), BuildTarget("cpu", "wheel"), PLACES)


def test_a_wheel_takes_no_build_options():
    """What cannot be honoured is not ignored."""
    target = BuildTarget("gpu", "wheel", cuda_arch="120")
    with pytest.raises(JobFailure, match="build options"):
        xllamacpp.build(REVISION, target, PLACES)


def test_settings_and_cache_types_are_read():
    """The description's lines become names and choices, other lines are passed over."""
    assert {"hostnames", "n_ctx", "cache_type_k"} <= FLAGS.names
    assert FLAGS.choices["cache_type_k"] == ("f16", "q8_0")
    assert "ggml_cuda_init:" not in FLAGS.names


def test_the_launch_is_one_json_argument():
    """The environment's own interpreter runs our launcher, isolated, with all settings."""
    argv = xllamacpp.launch(LAUNCH, FLAGS).argv
    assert argv[:4] == ("/run/artifact/bin/python", "-I", "-B", "/run/server.py")
    assert set(wanted()) <= xllamacpp_server.KNOWN


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"intent": {"kv": "turbo3"}}, "kv = turbo3"),
        ({"flags": ("--x",)}, "no command line"),
        ({"env": {"LLAMA_ARG_X": "1"}}, "LLAMA_ARG_X"),
        ({"env": {"PYTHONPATH": "/x"}}, "PYTHONPATH"),
    ],
)
def test_what_a_release_cannot_do_is_unsupported(change, words):
    """Intents, flags and variables are checked before anything starts."""
    with pytest.raises(JobFailure, match=words):
        xllamacpp.launch(replace(LAUNCH, **change), FLAGS)


def test_a_release_without_an_address_is_unsupported():
    """A release that cannot be told where to listen is said so, not started."""
    with pytest.raises(JobFailure, match="where to listen"):
        xllamacpp.launch(LAUNCH, xllamacpp.read_help("setting port int"))


def test_the_launcher_knows_both_names_of_the_address():
    """Releases before 2026.9 take one address, later ones several."""
    release = params(hostnames=..., hostname="")
    xllamacpp_server.apply(release, wanted())
    assert release.hostname == "/run/engine/e.sock"


def test_the_launcher_applies_every_setting():
    """Asked settings and everything that would make two runs differ."""
    release = params()
    xllamacpp_server.apply(release, wanted(kv="q8_0", batch=1024))
    assert release.hostnames == ["/run/engine/e.sock"]
    assert release.model.path == "/m.gguf"
    assert release.model_alias == {"ours"}
    assert (release.n_ctx, release.n_parallel, release.n_batch) == (2048, 1, 1024)
    assert release.cache_type_k is release.cache_type_v is CacheType.GGML_TYPE_Q8_0
    assert release.flash_attn_type is Attention.LLAMA_FLASH_ATTN_TYPE_ENABLED
    assert release.cpuparams.n_threads == 2
    assert (release.fit_params, release.cache_ram_mib) == (False, 0)
    assert not hasattr(release, "n_ctx_checkpoints")


def test_the_launcher_gives_a_plain_alias_where_one_is_expected():
    """Releases differ in the type of the alias."""
    release = params(model_alias="")
    xllamacpp_server.apply(release, wanted())
    assert release.model_alias == "ours"


@pytest.mark.parametrize("change", [{"hostnames": ...}, {"cache_type_k": ...}])
def test_the_launcher_refuses_what_a_release_lacks(change):
    """A needed setting that is missing is refused with its name."""
    with pytest.raises(xllamacpp_server.Refused, match=next(iter(change))):
        xllamacpp_server.apply(params(**change), wanted(kv="q8_0"))


@pytest.mark.parametrize("argument", ["", "[]", "nonsense", '{"colour": 1}'])
def test_the_launcher_refuses_an_unknown_argument(argument, capsys):
    """A wrong argument ends with code 2 and one clear line."""
    assert xllamacpp_server.main([argument]) == 2
    assert capsys.readouterr().out.startswith("error: one JSON object")


def test_the_launcher_describes_and_refuses_by_release(capsys, monkeypatch):
    """A description lists settings; a release that lacks one ends with code 3, and is named so."""
    release = SimpleNamespace(CommonParams=params)
    monkeypatch.setitem(sys.modules, "xllamacpp", release)
    assert xllamacpp_server.main(['{"describe": true}']) == 0
    described = xllamacpp.read_help(capsys.readouterr().out)
    assert described.choices["cache_type_k"] == ("f16", "q8_0")
    release.CommonParams = lambda: params(hostnames=...)
    assert xllamacpp_server.main([json.dumps(wanted())]) == 3
    found = classify(capsys.readouterr().out, xllamacpp.FAILURES)
    assert found.rule.name == "no_setting"


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_known_by_its_own_name(name):
    """The registry's keys are the families' names, and each way to build is a known word."""
    found = family(name)
    assert name == found.FAMILY
    assert found.VIA in ("cmake", "wheel")
    assert found.RECIPE >= 1


def test_an_unknown_family_names_the_known_ones():
    """A wrong name is the caller's mistake, with the right ones."""
    with pytest.raises(UsageError) as caught:
        family("vllm")
    assert "llama.cpp" in caught.value.advice
