"""Reads a model's header wherever its place is: a path, an address, or a file of the hub."""

from __future__ import annotations

from collections.abc import Callable

from jobs.config import Settings
from jobs.hub import Hub
from scout.hub.desk import open_client
from scout.hub.places import is_hub_place, locate
from scout.weight_places import Reading, read_model


def reader(settings: Settings) -> Callable[[str, bool], Reading]:
    """What reads a place, in full or for its facts; the token goes to the hub and nowhere else.

    The place of a reading of the hub is the address of its file at a commit.
    """

    def read(place: str, full: bool) -> Reading:
        if is_hub_place(place):
            settings.prepare()
            place = locate(place, lambda: open_client(settings)).url
        if "://" not in place:
            return read_model(place, full=full)
        hub = Hub(settings.hf_endpoint, settings.hf_token)
        return read_model(place, full=full, token=hub.token_for(place))

    return read
