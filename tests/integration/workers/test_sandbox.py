"""Hostile steps against real sandboxes: what the cage keeps out of reach."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from support.place import CAGED, EVERY, Place

from workers.bubblewrap import Bubblewrap
from workers.proof import prove
from workers.sandbox import Limits, Mount, Sandbox
from workers.uncaged import Uncaged


@CAGED
def test_the_cage_proves_itself(sandbox: Sandbox) -> None:
    """Network, files, environment and processes of the machine are out of reach."""
    assert prove(sandbox) == []


def test_the_proof_sees_an_open_door() -> None:
    """The same probe without a cage finds its leaks, so its silence means something."""
    leaks = prove(Uncaged())
    assert "a secret file can be read" in leaks
    assert "this machine's loopback can be reached" in leaks
    assert "a process of this machine is visible" in leaks


@CAGED
def test_a_secret_file_is_not_there(place: Place, tmp_path: Path) -> None:
    """What is not mounted cannot be read, whatever its permissions."""
    secret = tmp_path / "secret"
    secret.write_text("hush")
    secret.chmod(0o644)
    paths = (str(secret), str(Path.home() / ".ssh"), "/etc/shadow", "/home", "/run")
    said = place.run(f"import os; print([p for p in {paths!r} if os.path.exists(p)])")
    assert said.strip() == "[]"


@EVERY
def test_our_environment_is_not_handed_down(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token of the worker is not in the step's environment (case C115)."""
    monkeypatch.setenv("GITHUB_TOKEN", "hush")
    said = place.run("import os; print(sorted(os.environ))", env={"CC": "gcc"})
    assert "GITHUB_TOKEN" not in said
    assert "'CC'" in said


@CAGED
def test_no_process_in_the_cage_tells_of_the_machine(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither environments nor command lines under /proc name secrets or folders of ours."""
    monkeypatch.setenv("GITHUB_TOKEN", "hush-hush")
    program = """
import pathlib
for p in pathlib.Path('/proc').glob('[0-9]*'):
    print((p / 'cmdline').read_bytes(), (p / 'environ').read_bytes())
"""
    said = place.run(program)
    assert {"bubblewrap": "bwrap", "docker": "docker-init"}[place.sandbox.name] in said
    assert "hush-hush" not in said
    assert str(place.mount.host) not in said


@CAGED
def test_the_network_is_gone(place: Place) -> None:
    """TCP to a listener of this machine and UDP to anywhere fail at once (case C111)."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        said = place.run(f"""
import socket
stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
for kind, host, port in ((stream, '127.0.0.1', {port}), (datagram, '192.0.2.1', 53)):
    try:
        socket.socket(socket.AF_INET, kind).connect((host, port))
        print('reached')
    except OSError:
        print('refused')
""")
    assert said.split() == ["refused", "refused"]


@pytest.mark.needs("bwrap")
def test_a_card_of_the_bench_is_the_only_device_shown(tmp_path: Path) -> None:
    """What is named is there and stays a device; nothing else of the machine's devices is."""
    seen = {}
    program = "import os, stat; " + "; ".join(
        f"print(os.path.exists('{path}') and stat.S_ISCHR(os.stat('{path}').st_mode))"
        for path in ("/dev/kmsg", "/dev/mem", "/dev/console")
    )
    for devices in ((), ("/dev/kmsg",)):
        folder = tmp_path / str(len(devices))
        folder.mkdir()
        seen[devices] = Place(Bubblewrap(devices), folder).run(program).split()
    assert seen == {(): ["False"] * 3, ("/dev/kmsg",): ["True", "False", "False"]}


@CAGED
def test_only_writable_mounts_can_be_written(place: Place) -> None:
    """Root, system and read-only mounts refuse; the job's folder and /tmp accept."""
    place.mounts = (*place.mounts, Mount(place.mount.host, "/source"))
    said = place.run("""
places = '/ /usr /etc /dev /source /proc/sys/kernel /job /tmp /dev/shm'
for folder in places.split():
    try:
        open(folder + '/x', 'w').close()
        print(folder)
    except OSError:
        pass
""")
    assert said.split() == ["/job", "/tmp", "/dev/shm"]


@CAGED
def test_the_cage_has_no_rights_and_no_way_to_new_ones(place: Place) -> None:
    """No capability, no gain by setuid programs, nobody's ids, no nested user namespace."""
    said = place.run("""
import os, subprocess
status = open('/proc/self/status').read()
print(os.getuid(), os.getgid(), 'CapEff:\\t0000000000000000' in status, 'NoNewPrivs:\\t1' in status)
print(subprocess.run(['unshare', '--user', 'true'], stderr=subprocess.DEVNULL).returncode != 0)
""")
    assert said.split() == ["65534", "65534", "True", "True", "True"]


@CAGED
def test_the_memory_folder_is_bounded(place: Place) -> None:
    """/tmp cannot eat the machine's memory."""
    said = place.run(
        """
try:
    open('/tmp/x', 'wb').write(bytes(4 << 20))
    print('wrote')
except OSError as error:
    print(error.strerror)
""",
        limits=Limits(tmp_bytes=1 << 20),
    )
    assert said.strip() == "No space left on device"
