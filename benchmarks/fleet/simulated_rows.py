"""The fleets that are simulated, in groups, each for one question."""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from statistics import fmean
from typing import Any

from benchmarks.fleet.simulated_fleet import FleetFigures, SimulatedFleet, simulate

BASE = SimulatedFleet()
LAPTOP = SimulatedFleet(compilers=2, devices=1, runs=2)
LARGE = SimulatedFleet(compilers=900, devices=100, runs=200, minutes=2)
SMALL_DEVICES = 20  # up to here means of several seeds
SEEDS = 3


@dataclass(frozen=True)
class Scenario:
    """A fleet, and the question for which it is simulated."""

    question: str
    fleet: SimulatedFleet


def scenarios() -> Iterator[Scenario]:
    """Yields all scenarios."""
    yield from _varied("2 compile children, 1 device, 2 runs", LAPTOP, pending=(1, 2, 3, 4))
    yield from _varied("pending trials", BASE, is_pooled=(False, True), pending=(1, 2, 3, 4, 8, 16, 32))
    for devices in (1, 2, 4, 8):
        single = replace(BASE, devices=devices, runs=1, is_pooled=True)
        limits = sorted({devices, 2 * devices, 2 * devices + 2, 3 * devices})
        yield from _varied("one run on all devices", single, pending=tuple(limits))
    yield from _varied("a run for each device", BASE, runs=(4,), pending=(1, 2, 3, 4, 8))
    yield from _varied("compile children", BASE, compilers=(1, 2, 3, 4, 8, 16))
    yield from _varied(
        "compile children, GPU kernels", replace(BASE, compile_s=(0.35, 0.42)), compilers=(1, 2, 3, 4, 8, 16)
    )
    yield from _varied("hop", BASE, hop_s=(0.0, 0.1, 0.3, 1.0))
    yield from _varied("gap", BASE, gap_s=(0.0, 0.01, 0.1, 0.2))
    yield from _varied("idle measuring nodes poll", BASE, runs=(4, 8), poll_s=(0.0, 0.2, 1.0, 5.0))
    for nodes in (10, 30, 100, 300):
        sized = replace(LARGE, compilers=nodes * 9 // 10, devices=nodes // 10, runs=nodes // 5)
        yield Scenario("nodes", sized)
    yield from _varied("1,000 nodes, pending trials", LARGE, pending=(2, 3, 8))
    yield from _varied("1,000 nodes, database", LARGE, server_s=(0.0005, 0.001, 0.0024, 0.004, 0.01))
    yield from _varied("1,000 nodes, few compile", LARGE, compilers=(50, 100, 200))
    yield from _varied("1,000 nodes, nodes are lost", LARGE, losses_per_hour=(1 / 24, 1.0, 6.0))


def _varied(question: str, base: SimulatedFleet, **values: tuple[Any, ...]) -> Iterator[Scenario]:
    """Yields a fleet for each combination of values."""
    for chosen in product(*values.values()):
        yield Scenario(question, replace(base, **dict(zip(values, chosen, strict=True))))


def simulated_rows() -> Iterator[dict[str, Any]]:
    """Yields a row for each fleet: its question, its difference from the base fleet, its results."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(row_of, scenarios())


def row_of(scenario: Scenario) -> dict[str, Any]:
    """Simulates a fleet, a small one several times; returns means."""
    fleet = scenario.fleet
    seeds = SEEDS if fleet.devices <= SMALL_DEVICES else 1
    found = [simulate(fleet, seed) for seed in range(seeds)]
    means = {key.name: fmean(getattr(each, key.name) for each in found) for key in fields(FleetFigures)}
    return {
        "question": scenario.question,
        "fleet": asdict(fleet),
        "seeds": seeds,
        **{name: round(value, 4) for name, value in means.items()},
    }
