"""The shape of the model at a place, all files of a set taken together; reads headers only."""

from __future__ import annotations

from collections.abc import Callable

from jobs.errors import UsageError
from jobs.fit.joining import refuse_part, shape_from
from jobs.fit.shape import Shape
from jobs.terminal import printable
from scout.weight_places import Reading, read_model

MOST_PARTS = 200
"""The largest published sets have fewer files; each costs a header."""

Read = Callable[[str, bool], Reading]


def read_place(place: str, full: bool) -> Reading:
    """The reading of one file."""
    return read_model(place, full=full)


def shape_at(place: str, *, full: bool = True, read: Read = read_place) -> Shape:
    """The shape of the file, or of the whole set that the file is a part of.

    Without `full` the size of the file stands for its tensors, and no more keys are read than
    tell whether it has MTP heads inside.
    """
    first = read(place, full)
    shard = first.facts.shard
    if not full:
        return _of_keys(first, read)
    if shard is None or shard.count == 1 or not shard.is_possible:
        refuse_part(first.facts, 1)
        return shape_from(first.header, first.facts)
    if shard.count > MOST_PARTS:
        raise UsageError(
            f"{printable(first.file_name)[-80:]!r} is one of {shard.count} files",
            advice=f"Sets of up to {MOST_PARTS} files are read.",
        )
    readings = [
        first if number == shard.number else read(_part(first.place, shard.number, number), full)
        for number in range(1, shard.count + 1)
    ]
    for each in readings:
        refuse_part(each.facts, shard.count)
    head, *rest = readings
    return shape_from(head.header, head.facts, parts=[each.facts for each in rest])


def _of_keys(reading: Reading, read: Read) -> Shape:
    shard = reading.facts.shard
    if shard is not None and not shard.is_possible:
        refuse_part(reading.facts, 1)
    shape = shape_from(reading.header, reading.facts)
    if shape.can_be_paired:
        return shape
    whole = read(reading.place, True)
    return shape_from(whole.header, whole.facts)


def _part(place: str, number: int, wanted: int) -> str:
    """The place of another file of the same set: the last number of its kind is changed."""
    before, word, after = place.rpartition(f"-{number:05d}-of-")
    return f"{before}{word.replace(f'{number:05d}', f'{wanted:05d}')}{after}"
