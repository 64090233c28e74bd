"""The bench job: verified artifact and weights in; boots measured, judged, stored as one result."""

from __future__ import annotations

from functools import partial
from typing import Any

from jobs.control import Control
from jobs.db import reading
from jobs.model import Boot
from jobs.payloads import BenchPayload
from jobs.station import Record, Station
from jobs.store.leases import Lease
from workers.bench import run_boot
from workers.card_memory import card_memory
from workers.clocks import usual_clock
from workers.errands import Errand
from workers.gpu import closing_card
from workers.host import machine_facts
from workers.machine import remember_card
from workers.plan import ARMS, Place, Plan
from workers.preparing import Bench, prepare
from workers.quiet import disturbance, marked, recover, wait_for_quiet
from workers.recording import record
from workers.sandbox import Limits
from workers.turns import Side, keep_boot, record_sides, run_in_turns
from workers.weight_store import being_read

MEMORY_SPARE = 0.9
"""Share of the machine's memory a server may take before it is ended."""


PATIENCE = 2
"""How many times the asked boots may be tried before a noisy machine makes a tainted result."""


def bench(station: Station, held: Lease, control: Control) -> Record:
    """Boot, measure, judge; the result and its verdict are stored with the end of the job."""
    wanted = BenchPayload.model_validate(held.payload)
    errand = Errand(station, held, control)
    if wanted.baseline is not None:
        return bench_in_turns(errand, wanted, wanted.baseline)
    prepared, boots, facts = measured(errand, wanted)
    return lambda session: record(session, held.job_id, prepared, boots, facts)


def measured(errand: Errand, wanted: BenchPayload) -> tuple[Bench, list[Boot], dict[str, Any]]:
    """Everything checked, every boot done, and what the machine said of itself before."""
    prepared = prepare(errand, wanted)
    facts = machine_facts()
    place = place_of(errand, prepared, facts)
    with being_read(prepared.weights), closing_card(prepared.card):
        remember_card(errand.station, place.card)
        boots = _undisturbed(errand, prepared.plan, place)
    return prepared, boots, facts


def place_of(errand: Errand, prepared: Bench, facts: dict[str, Any]) -> Place:
    """Where a prepared bench boots its server."""
    least_mhz = None
    if prepared.card:
        with reading(errand.station.database) as session:
            least_mhz = usual_clock(session, prepared.wanted.rig, facts)
    return Place(
        sandbox=prepared.sandbox,
        limits=Limits(memory_bytes=int(facts["memory_gib"] * 2**30 * MEMORY_SPARE)),
        runtime=errand.station.settings.runtime,
        log=errand.log,
        marker=errand.marker,
        card=prepared.card,
        card_memory=prepared.card.held_by if prepared.card else card_memory(),
        least_mhz=least_mhz,
    )


def bench_in_turns(errand: Errand, wanted: BenchPayload, baseline: BenchPayload) -> Record:
    """Boot the candidate and its baseline in turns; each leaves a result, and what pairs them."""
    station, held = errand.station, errand.held
    prepared = [prepare(errand, each) for each in (wanted, baseline)]
    facts = machine_facts()
    sides = [
        Side(name, each, place_of(errand, each, facts))
        for name, each in zip(ARMS, prepared, strict=True)
    ]
    with (
        being_read([path for each in prepared for path in each.weights]),
        closing_card(prepared[0].card),
        closing_card(prepared[1].card),
    ):
        remember_card(station, sides[0].place.card)
        run_in_turns(errand, sides, most_rounds=PATIENCE * wanted.boots)
    return partial(
        record_sides, held=held, sides=sides, facts=facts, days=station.settings.negative_days
    )


def _undisturbed(errand: Errand, plan: Plan, place: Place) -> list[Boot]:
    """Boot until enough boots were left alone, or `PATIENCE` runs out; all of them are kept."""
    boots: list[Boot] = []
    alone = 0
    while alone < plan.boots and len(boots) < PATIENCE * plan.boots:
        limit = errand.station.settings.quiet_seconds
        wait_for_quiet(errand.control, limit_seconds=limit, card=place.card)
        boot = run_boot(
            plan,
            place,
            number=len(boots) + 1,
            control=errand.control,
            keep=partial(keep_boot, errand),
        )
        boots.append(marked(boot, least_mhz=place.least_mhz))
        if disturbance(boot, least_mhz=place.least_mhz):
            recover(errand.control, place.card, limit_seconds=limit)
        else:
            alone += 1
    return boots
