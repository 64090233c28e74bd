"""A hub with one file, and a download of it with every argument filled in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from support.one_file import BLOCK_BYTES, FILE, SHA, WEIGHTS, Bring
from support.weights_hub import COMMIT, REPO, WeightsHub

from jobs.control import Control
from jobs.hub import Hub
from jobs.tables import ModelFileRow
from workers.download_plan import LEAST_RATE
from workers.weight_bringing import bring
from workers.weight_store import Store


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")


@pytest.fixture
def hub() -> Iterator[WeightsHub]:
    with WeightsHub({FILE: WEIGHTS}) as server:
        yield server


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "weights"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def fetch(hub: WeightsHub, root: Path, tmp_path: Path, said: list[str]) -> Bring:
    """Bring with every argument filled in."""

    def run(*, token: str = "", control: Control | None = None, **changes: Any) -> Any:
        limits = {
            key: changes.pop(key) for key in ("budget_bytes", "min_free_bytes") if key in changes
        }
        least_rate = changes.pop("least_rate", LEAST_RATE)
        places = changes.pop("places", lambda _sha256: ())
        store = Store(
            root,
            kept=set,
            let_go=lambda _sha: True,
            say=said.append,
            block_bytes=BLOCK_BYTES,
            **limits,
        )
        values = {
            "name": "tiny",
            "model_class": "tiny",
            "sha256": SHA,
            "size_bytes": None,
            "source": {"repo": REPO, "file": FILE, "revision": COMMIT},
        }
        return bring(
            ModelFileRow(**{**values, **changes}),
            store,
            hub=Hub(hub.url, SecretStr(token)),
            scratch=tmp_path,
            control=control or Control(),
            log=None,
            say=said.append,
            least_rate=least_rate,
            places=places,
        )

    return run
