"""What goes wrong from outside: one clear message, the right exit code, nothing half-written."""

from __future__ import annotations

import signal
import socket
import subprocess

import httpx
import pytest
from support.hub import Hub
from support.system import MODEL, write_watchlist
from support.waiting import wait_for

from jobs.model import State

BENCH = ("submit", "bench", "--engine", "xllamacpp")
FORK = """
[[engine]]
name = "fork"
family = "llama.cpp"
repo = "owner/fork"
branches = ["main"]
trust = "auto"
[[engine.build]]
rig = "cpu"
via = "cmake"
"""
BROKEN_LISTS = {
    "not toml": "[[engine]\n",
    "unknown key": '[[engine]]\nname = "a"\nfamly = "xllamacpp"\npackage = "a"\n',
    "bad value": '[[engine]]\nname = "a"\nfamily = "xllamacpp"\npackage = "a"\nnewest = -1\n',
}


def complaint(done):
    """The one sentence and its next step; anything more is too much."""
    assert done.stderr.count("error:") == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ((*BENCH[:3], "xlamacpp"), "xllamacpp"),
        ((*BENCH, "--ref", "1999.1"), "known are"),
        ((*BENCH, "--target", "tini:f32"), MODEL),
        ((*BENCH, "--rig", "cqu"), "cpu"),
        ((*BENCH, "--scenario", "decode-127"), "decode-128"),
        (("show", "4711"), "forkscout jobs --all"),
        (("worker", "bild"), "scout, build, publish"),
    ],
)
def test_an_unknown_name_is_a_wrong_wish(demo, words, near):
    """Exit code 2, the nearest right word, and no job more than before."""
    before = len(demo.system.jobs())
    done = demo.system.run(*words)
    assert done.returncode == 2, done.stderr
    assert near in complaint(done)
    assert len(demo.system.jobs()) == before


@pytest.mark.parametrize("text", BROKEN_LISTS.values(), ids=BROKEN_LISTS)
def test_a_malformed_watch_list_is_a_wrong_wish(system, folder, text):
    """Exit code 2 with the file's name, and what was watched is watched as before."""
    before = system.run("watchlist", "list", "--json").stdout
    broken = folder / "broken.toml"
    broken.write_text(text)
    done = system.run("watchlist", "import", str(broken), "--replace")
    assert done.returncode == 2
    assert "broken.toml" in complaint(done)
    assert system.run("watchlist", "list", "--json").stdout == before


def test_a_demo_with_a_malformed_watch_list_fails(make_system, folder):
    """It ends by itself with the reason, and no half of the list is loaded."""
    system = make_system()
    broken = folder / "broken.toml"
    broken.write_text(BROKEN_LISTS["unknown key"])
    done = system.run("demo", FORKSCOUT_WATCHLIST=str(broken))
    assert done.returncode in (1, 2), done.stdout
    assert "broken.toml" in done.stdout + done.stderr
    assert (system.count("engine"), system.count("job")) == (0, 0)
    assert system.processes() == {}


def test_a_dead_package_index_is_said_and_nothing_concluded(make_system):
    """Exit code 1 with the reason; no release is written, and the next look may find them."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/simple"
        dead = {"PIP_INDEX_URL": url, "PIP_EXTRA_INDEX_URL": url, "PIP_RETRIES": "0"}
        system = make_system(**dead)
        done = system.run("demo")
    assert done.returncode == 1
    assert "the package index did not answer about xllamacpp" in done.stdout
    assert (system.count("revision"), system.count("event"), system.count("job")) == (0, 0, 0)


def test_weights_of_another_digest_are_never_kept(make_system, shelf, folder):
    """The fetch fails, the bench waits for it, the message names both digests."""
    system = make_system()
    write_watchlist(folder / "list.toml", shelf.weights, sha256="0" * 64)
    done = system.run("demo", seconds=300)
    assert done.returncode == 1
    (fetch,) = [row for row in system.jobs() if row.kind == "fetch_model"]
    assert fetch.state == State.FAILED
    assert "sha256" in done.stdout
    assert list(system.settings.weights.glob("*.gguf")) == []
    assert list(system.settings.scratch.iterdir()) == []
    (bench,) = [row for row in system.jobs() if row.kind == "bench"]
    assert (bench.state, bench.blocked_by) == (State.BLOCKED, f"job:{fetch.id}")


def test_a_disk_that_must_stay_free_is_kept_free(make_system):
    """Jobs that would fill it are refused before they write, and blame no engine."""
    system = make_system(FORKSCOUT_MIN_FREE_BYTES=str(10**15), FORKSCOUT_MAX_ATTEMPTS="1")
    done = system.run("demo", seconds=300)
    assert done.returncode == 1
    rows = [row for row in system.jobs() if row.kind in ("fetch_model", "build")]
    assert {(row.state, row.failure_class) for row in rows} == {(State.DEAD, "disk_full")}
    assert "GB needed" in done.stdout
    assert list(system.settings.scratch.iterdir()) == []


def test_a_full_disk_is_told_and_left_clean(make_system, folder):
    """With a disk too small for the build, the job says so and its pieces are gone."""
    home = folder / "v"
    home.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(home)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("run as root")
    try:
        system = make_system(FORKSCOUT_MIN_FREE_BYTES="0", FORKSCOUT_MAX_ATTEMPTS="1")
        done = system.run("demo", seconds=300)
        assert done.returncode == 1, done.stdout
        (build,) = [row for row in system.jobs() if row.kind == "build"]
        assert (build.state, build.failure_class) == (State.DEAD, "disk_full"), build
        assert build.advice
        assert list(system.settings.scratch.iterdir()) == []
        assert [p for p in system.settings.artifacts.iterdir() if len(p.name) == 64] == []
        assert system.processes() == {}
    finally:
        system.end()
        subprocess.run(["umount", str(home)], check=True)


def test_a_taken_port_ends_up_before_it_starts(system):
    """Exit code 2, another port is advised, nothing was started."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = system.run("up", FORKSCOUT_PORT=str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert "FORKSCOUT_PORT" in complaint(done)
    assert system.processes() == {}


@pytest.mark.parametrize(
    "changes", [{"FORKSCOUT_PORT": "none"}, {"FORKSCOUT_RIG": "../x"}, {"FORKSCOUT_SANDBOX": "x"}]
)
def test_a_wrong_setting_is_a_wrong_wish(system, changes):
    """It is named, with exit code 2, before anything starts."""
    done = system.run("up", seconds=20, **changes)
    assert done.returncode == 2
    assert next(iter(changes)) in complaint(done)
    assert system.processes() == {}


@pytest.mark.needs("git", "bwrap", "cmake", "g++")
def test_without_a_cage_wheels_run_uncaged_and_forks_wait(system, folder):
    """Board and pages say so; a fork's source waits for a cage and is freed by a restart."""
    hub = Hub(folder / "hub")
    fork = hub.add("owner/fork")
    fork.commit({"CMakeLists.txt": "no project"})
    fork.push()
    listed = folder / "more.toml"
    listed.write_text(FORK)
    system.environment |= {"GIT_CONFIG_GLOBAL": str(hub.config), "GIT_CONFIG_NOSYSTEM": "1"}
    assert system.run("watchlist", "import", str(listed)).returncode == 0
    caged = system.count("result", "sandbox = 'bubblewrap'")
    running = system.up(FORKSCOUT_SANDBOX="none")
    system.run("submit", "bench", "--engine", "xllamacpp", "--runs", "2", "--boots", "1")
    done = system.run("submit", "build", "--engine", "fork")
    assert done.returncode == 0, done.stderr
    build = system.jobs()[-1].id
    found = system.wait_for_state(build, State.BLOCKED, State.FAILED)
    assert (found.state, found.blocked_by, found.attempts) == (State.BLOCKED, "no_sandbox", 0)
    assert "apt install bubblewrap" in system.run("show", str(build)).stdout
    wait_for(lambda: system.count("result", "sandbox = 'uncaged'"), seconds=60, what="a result")
    assert system.count("result", "sandbox = 'bubblewrap'") == caged
    assert "uncaged" in system.run("leaderboard").stdout
    assert "uncaged" in httpx.get(f"{system.address}/leaderboard.html").text
    running.send(signal.SIGINT)
    assert running.wait() == 0
    again = system.up()
    found = system.wait_for_state(build, State.FAILED, State.SUCCEEDED, State.DEAD)
    assert (found.state, found.blame) == (State.FAILED, "engine"), found
    again.send(signal.SIGINT)
    assert again.wait() == 0
