"""The fetch job: one model file into the weights store, verified."""

from __future__ import annotations

from sqlmodel import Session

from jobs.control import Control
from jobs.db import reading
from jobs.payloads import FetchPayload
from jobs.station import Record, Station
from jobs.store import weights
from jobs.store.leases import Lease
from workers.errands import Errand, model_file
from workers.headers import read_local


def fetch_model(station: Station, held: Lease, control: Control) -> Record:
    """Download, assemble and check one model file, and read its header."""
    wanted = FetchPayload.model_validate(held.payload)
    errand = Errand(station, held, control)
    with reading(station.database) as session:
        model = model_file(session, wanted.model_file_id)
    paths = errand.weights(model)
    size_bytes = sum(path.stat().st_size for path in paths)
    header = read_local(paths, check=control.check)

    def record(session: Session) -> str:
        for row in weights.rows_of(session, model.sha256):
            header.put_in(row)
            session.add(row)
        return f"{size_bytes / 1e6:.0f} MB, sha256 {model.sha256[:12]} verified"

    return record
