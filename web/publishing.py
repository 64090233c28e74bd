"""The publish job: the static export, written whole."""

from __future__ import annotations

from jobs.control import Control
from jobs.station import Record, Station
from jobs.store.leases import Lease
from web.export import export
from web.site import site_of


def publish(station: Station, held: Lease, control: Control) -> Record:
    """Write the site and swap it in."""
    control.report("write pages")
    page = export(station.database, station.settings.resolved_site, site=site_of(station.settings))
    station.log_of(held).write_text(f"--- wrote {page.name} and its siblings\n")
    return lambda _session: "the site is written"
