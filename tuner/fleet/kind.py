"""Outcomes from a fleet: nodes compile and measure; everything else of a run stays as without a fleet."""

from dataclasses import replace
from typing import Final

from tuner.core.errors import UsageError
from tuner.core.target_name import TargetName
from tuner.fleet.driver import FleetRequest, alive_nodes
from tuner.fleet.fleet_run import FleetRun, named
from tuner.tuning.composition import Composition
from tuner.tuning.outcome_source import OutcomeSource
from tuner.tuning.target_choice import AUTO
from tuner.tuning.target_kind import TargetKind, TargetStatus, no_choice

PENDING_OF_ONE: Final = 3  # proposals in flight of a run on one device: docs/guides/fleet.md
NO_NODE: Final = "no node of the fleet measures for it; start one: tuner fleet worker --measure"
PENDING_PER_DEVICE: Final = 2  # and as many more for every device where there are several


def pending_limit(devices: int) -> int:
    """Returns how many candidates of a run may be proposed without an outcome yet, for a number of devices.

    With more of them, each proposal is based on fewer outcomes; with fewer, devices are idle.
    """
    return PENDING_OF_ONE if devices == 1 else PENDING_PER_DEVICE * (devices + 1)


def fleet_composition(composition: Composition, fleet: FleetRequest) -> Composition:
    """Returns the parts of a run with target kinds and recordings for which nodes of a fleet do the work.

    The size of this machine's memory becomes 0, unknown: nodes check whether a problem fits.
    """
    here = composition.recordings
    return replace(
        composition,
        kinds={name: fleet_kind(kind, fleet) for name, kind in composition.kinds.items()},
        recordings=replace(here, of_run=lambda settings: fleet_outcomes(here.of_run(settings), fleet)),
        # whether a problem fits in memory is checked by nodes: 0 bytes are an unknown size
        machine=lambda: replace(composition.machine(), memory_bytes=0),
    )


def fleet_kind(kind: TargetKind, fleet: FleetRequest) -> TargetKind:
    """Returns a target kind whose candidates are compiled and timed by the nodes of a fleet."""
    outcomes = replace(
        fleet_outcomes(kind.outcomes, fleet), is_timed=lambda: fleet_status(kind, fleet).is_timed
    )
    described = None if kind.described is None else fleet_kind(kind.described, fleet)
    return replace(
        kind,
        status=lambda: fleet_status(kind, fleet),
        outcomes=outcomes,
        described=described,
        baselines=no_choice("--fleet: nodes compare with their default library"),
    )


def fleet_outcomes(own: OutcomeSource, fleet: FleetRequest) -> OutcomeSource:
    """Returns an outcome source whose machine, bench, baseline and roofline are those of fleet nodes.

    The compiler is that of ``own``, but UsageError is raised unless a node has an equal one. Everything else,
    such as the plan of the search, is taken from ``own``.
    """
    run = FleetRun(own, fleet)
    return replace(
        own,
        machine=run.machine,
        compiler=run.compiler,
        bench=run.bench,
        benches=run.benches,
        baseline=run.baseline,
        roofline=run.roofline,
    )


def fleet_status(kind: TargetKind, fleet: FleetRequest) -> TargetStatus:
    """Returns whether nodes of a fleet measure for a target kind, and on which chip ("": none or several).

    Whether this machine can compile for the kind stays as it is.
    """
    own = kind.status()
    nodes = [node for node in alive_nodes(fleet) if TargetName.parse(node.target).is_of(kind.name)]
    chips = {node.machine.chip for node in nodes if node.device}
    return replace(
        own,
        is_available=bool(chips),
        is_timed=own.is_timed or not own.is_available,
        chip=chips.pop() if len(chips) == 1 else "",
        reason="on the fleet" if chips else NO_NODE,
        missing="",
    )


def target_on(fleet: FleetRequest, given: str, kind: str) -> TargetName:
    """Returns the target of the class of machines that ``given`` names, among those that fleet nodes measure.

    ``given`` is a part of "CLASS (TARGET)"; ``kind`` is a target kind, or "auto" for every kind. Raises
    UsageError where no class, or more than one, matches.
    """
    measuring = [node for node in alive_nodes(fleet) if node.device]
    targets = [(node.machine.name, TargetName.parse(node.target)) for node in measuring]
    classes = {f"{name} ({target.text})": target for name, target in targets if kind in (AUTO, target.kind)}
    found = named(classes, given)
    if len(found) != 1:
        listed = ", ".join(sorted(found or classes)) or "none"
        raise UsageError(f"--on: found {given!r}, allowed a part of the name of one of {listed}")
    return next(iter(found.values()))
