"""How a server sees its weights."""

from __future__ import annotations

from pathlib import Path

from workers.plan import weight_mounts


def test_one_file_has_one_name_and_a_set_keeps_its_names() -> None:
    """A server looks for the other files of a set beside the first, by name."""
    [alone] = weight_mounts([Path("/w/abc.gguf")])
    assert alone.inside == "/weights/target.gguf"
    names = ("q-00001-of-00002.gguf", "q-00002-of-00002.gguf")
    mounts = weight_mounts([Path("/w/set") / name for name in names])
    assert [mount.inside for mount in mounts] == [f"/weights/{name}" for name in names]
