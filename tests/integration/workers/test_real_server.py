"""The real llama.cpp server from its wheel, built by our recipe and measured by our bench."""

from __future__ import annotations

import hashlib
import shutil
import subprocess

import pytest
from support.real_engine import LIMITS, build

from jobs.control import Control
from jobs.engines import xllamacpp
from jobs.errors import JobFailure
from jobs.fit.estimate import estimate
from jobs.fit.setup import Card, Setup
from jobs.fit.stored import shape_in
from jobs.model import Validity
from jobs.scenarios import Scenario
from workers.artifacts import tree_digest
from workers.bench import run_bench
from workers.bubblewrap import Bubblewrap
from workers.flags import ask_help, flags_in
from workers.headers import read_local
from workers.plan import Place, Plan, interpreter_mounts, launcher_of
from workers.sandbox import Mount
from workers.uncaged import Uncaged


@pytest.fixture
def artifact(real_artifact):
    return real_artifact


@pytest.fixture
def weights(tiny_weights):
    return tiny_weights


def bench(sandbox, artifact, weights, tmp_path, *, endpoint="chat", intent=None, drafter=None):
    place = Place(sandbox, LIMITS, tmp_path, tmp_path / "log", f"test-{tmp_path.name}")
    tree = Mount(artifact, "/run/artifact")
    extra = interpreter_mounts(xllamacpp)
    control = Control()
    plan = Plan(
        engine=xllamacpp,
        scenario=Scenario("tiny", 1, endpoint, "Hello", tokens=48, runs=2, boots=1),
        flags=flags_in(xllamacpp, ask_help(xllamacpp, tree, place, control=control, mounts=extra)),
        artifact=tree,
        model=Mount(weights, "/run/model.gguf"),
        context_tokens=512,
        threads=1,
        runs=2,
        launcher=launcher_of(xllamacpp),
        mounts=extra,
        intent=intent or {},
        drafter=Mount(drafter, "/run/drafter.gguf") if drafter else None,
    )
    return run_bench(plan, place, control=control)


@pytest.mark.parametrize("endpoint", ["chat", "completion"])
def test_the_real_server_is_measured(artifact, weights, tmp_path, endpoint):
    """Every run of the real server is ok: our clock and its own agree, settings read back."""
    [boot] = bench(Uncaged(), artifact, weights, tmp_path, endpoint=endpoint)
    assert boot.listener_is_child
    assert (boot.effective.context_tokens, boot.effective.slots) == (512, 1)
    for measurement in boot.measurements:
        assert (measurement.validity, measurement.reason) == (Validity.OK, ""), measurement
        assert measurement.predicted_n == 48
        assert measurement.cache_n == 0
        assert measurement.prefill_tps > 0
        assert measurement.timings["predicted_n"] == 48
        assert 0 < measurement.ttft_ms < 5000


@pytest.mark.needs("bwrap")
def test_the_real_server_is_measured_in_the_cage(artifact, weights, tmp_path):
    """The same bench works without network, environment or a writable root."""
    [boot] = bench(Bubblewrap(), artifact, weights, tmp_path, intent={"kv": "q8_0"})
    assert boot.listener_is_child
    proof = boot.environment["proof"]
    assert proof["program"].startswith("bin/python")
    loaded = [name for name in proof["libraries"] if "/xllamacpp/" in name]
    assert loaded
    for name in loaded:
        with (artifact / name).open("rb") as file:
            assert proof["libraries"][name] == hashlib.file_digest(file, "sha256").hexdigest()
    assert {m.validity for m in boot.measurements} == {Validity.OK}


def test_a_real_drafter_drafts(artifact, weights, tmp_path):
    """A model that drafts for itself is always right: what the server says of it is kept."""
    [boot] = bench(Uncaged(), artifact, weights, tmp_path, drafter=weights)
    assert boot.effective.speculative is True
    for measurement in boot.measurements:
        assert (measurement.validity, measurement.reason) == (Validity.OK, ""), measurement
        assert measurement.draft_n > 0
        assert measurement.draft_accepted_n > 0


def test_a_drafter_of_a_kind_that_is_not_known_is_refused(artifact, weights, tmp_path):
    """Which words there are is said before a server starts."""
    with pytest.raises(JobFailure, match="speculation = 'dflsh'"):
        bench(
            Uncaged(), artifact, weights, tmp_path, drafter=weights, intent={"speculation": "dflsh"}
        )


def test_the_real_cache_is_as_large_as_the_header_lets_expect(artifact, weights, tmp_path):
    """The log's own figure, kept with the boot, is the estimate's to the byte."""
    [boot] = bench(Uncaged(), artifact, weights, tmp_path)
    shape = shape_in(read_local([weights], check=lambda: None).shape)
    layout = boot.layout
    found = estimate(
        Setup(
            target=shape,
            card=Card(total_bytes=0),
            context=layout.context_tokens,
            key=layout.cache_key,
            value=layout.cache_value,
            ubatch=layout.ubatch,
        )
    )
    [cache] = [each for each in found.components if each.name == "KV cache"]
    assert boot.memory.target.cache is not None
    assert abs(boot.memory.target.cache - cache.loaded.likely) < 0.005 * 2**20
    assert boot.memory.target.weights is None


def test_a_model_that_is_none_fails_in_the_load(artifact, tmp_path):
    """A file that is no model ends the boot with the failure the log names."""
    weights = tmp_path / "broken.gguf"
    weights.write_bytes(b"no model at all" * 100)
    with pytest.raises(JobFailure) as caught:
        bench(Uncaged(), artifact, weights, tmp_path)
    assert (caught.value.failure_class, caught.value.phase) == ("truncated", "load target")


def test_the_same_wheel_gives_the_same_artifact(real_wheel, artifact, tmp_path):
    """Where and when it is built leaves no trace, and it still works after a move."""
    again = build(real_wheel, tmp_path)
    moved = tmp_path / "moved"
    shutil.move(again, moved)
    assert tree_digest(moved) == tree_digest(artifact)
    asked = [str(moved / "bin" / "python"), "-I", "-B", "-c", "import xllamacpp"]
    subprocess.run(asked, check=True, timeout=60)
