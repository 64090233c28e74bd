"""Models of the hub from a watch list to the worker's wish; over both databases."""

from __future__ import annotations

from sqlalchemy import Engine
from support.rows import NOON

from jobs import db
from jobs.hub_names import set_sha256
from jobs.store import catalog
from scout.loading import apply
from scout.reading import parse
from workers.weight_downloads import wanted_of

SHARDS = ["1" * 64, "2" * 64]
LIST = f"""
[[model]]
name = "one"
repo = "a/b"
file = "one.gguf"
revision = "{"c" * 40}"
sha256 = "{"3" * 64}"
size_bytes = 5
model_class = "m"

[[model]]
name = "set"
repo = "a/b"
file = "q/set-00002-of-00002.gguf"
sha256 = "{set_sha256(SHARDS)}"
shards = ["{SHARDS[0]}", "{SHARDS[1]}"]
model_class = "m"
"""


def test_a_worker_understands_what_a_watch_list_says(database: Engine) -> None:
    """Repository, files and digests arrive; an import again changes nothing."""
    with db.writing(database) as session:
        assert apply(session, parse(LIST, "list.toml"), NOON).new == ("model one", "model set")
        again = apply(session, parse(LIST, "list.toml"), NOON)
        assert (again.new, again.changed) == ((), ())
    with db.reading(database) as session:
        one, both = (catalog.model_named(session, name) for name in ("one", "set"))
    wanted = wanted_of(one.source, sha256=one.sha256, size_bytes=one.size_bytes)
    assert (wanted.revision, wanted.files, wanted.size_bytes) == ("c" * 40, ("one.gguf",), 5)
    wanted = wanted_of(both.source, sha256=both.sha256, size_bytes=None)
    assert wanted.files == ("q/set-00001-of-00002.gguf", "q/set-00002-of-00002.gguf")
    assert (wanted.revision, wanted.digests) == ("main", tuple(SHARDS))
