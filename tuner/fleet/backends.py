"""The backends of a run on a fleet: nodes compile and measure, everything else stays as without a fleet."""

from dataclasses import replace
from typing import Final

from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.core.requests import FleetRequest
from tuner.fleet.driver import alive_nodes
from tuner.fleet.runner import FleetRun, named
from tuner.targets.backends import AUTO, Backends
from tuner.targets.interface import MeasurementBackend, TargetBackend, TargetStatus, no_choice

PENDING_OF_ONE: Final = 3  # proposals in flight of a run on one device: docs/concepts/fleet.md
NO_NODE: Final = "no node of the fleet measures for it; start one: tuner fleet worker --measure"
PENDING_PER_DEVICE: Final = 2  # of several devices; the run has as many more as one device


def pending_limit(devices: int) -> int:
    """Returns how many proposals of a run may be without an outcome, for a number of devices."""
    return PENDING_OF_ONE if devices == 1 else PENDING_PER_DEVICE * (devices + 1)


def fleet_backends(backends: Backends, fleet: FleetRequest) -> Backends:
    """Returns the parts of a run with target kinds and recordings for which nodes of a fleet do the work."""
    here = backends.recordings
    return replace(
        backends,
        kinds={name: fleet_kind(kind, fleet) for name, kind in backends.kinds.items()},
        recordings=replace(here, of_run=lambda settings: fleet_measurement(here.of_run(settings), fleet)),
        # whether a problem fits in memory is checked by nodes: 0 bytes are an unknown size
        machine=lambda: replace(backends.machine(), memory_bytes=0),
    )


def fleet_kind(kind: TargetBackend, fleet: FleetRequest) -> TargetBackend:
    """Returns a target kind whose candidates are compiled and timed by the nodes of a fleet."""
    measurement = replace(
        fleet_measurement(kind.measurement, fleet), is_timed=lambda: fleet_status(kind, fleet).is_timed
    )
    cross_compiled = None if kind.cross_compiled is None else fleet_kind(kind.cross_compiled, fleet)
    return replace(
        kind,
        status=lambda: fleet_status(kind, fleet),
        measurement=measurement,
        cross_compiled=cross_compiled,
        baselines=no_choice("--fleet: nodes compare with their default library"),
    )


def fleet_measurement(own: MeasurementBackend, fleet: FleetRequest) -> MeasurementBackend:
    """Returns an outcome source whose machine, runner, baseline and roofline are those of fleet nodes."""
    run = FleetRun(own, fleet)
    return replace(
        own,
        machine=run.machine,
        compiler=run.compiler,
        runner=run.runner,
        runners=run.runners,
        baseline=run.baseline,
        roofline=run.roofline,
    )


def fleet_status(kind: TargetBackend, fleet: FleetRequest) -> TargetStatus:
    """Returns whether nodes of a fleet measure for a target kind, and on which chip ("": none or several)."""
    own = kind.status()
    nodes = [node for node in alive_nodes(fleet) if TargetName.parse(node.target).is_of(kind.name)]
    chips = {node.machine.chip for node in nodes if node.device}
    return replace(
        own,
        is_available=bool(chips),
        # a kind that is missing here says "not timed" for that reason alone: nodes do time it
        is_timed=own.is_timed or not own.is_available,
        chip=chips.pop() if len(chips) == 1 else "",
        reason="on the fleet" if chips else NO_NODE,
        missing="",
    )


def target_on(fleet: FleetRequest, given: str, kind: str) -> TargetName:
    """Returns the target of the class of machines that ``given`` names, among those that fleet nodes measure.

    ``kind`` may be "auto". Raises UsageError where no class, or more than one, matches.
    """
    measuring = [node for node in alive_nodes(fleet) if node.device]
    targets = [(node.machine.name, TargetName.parse(node.target)) for node in measuring]
    classes = {f"{name} ({target.text})": target for name, target in targets if kind in (AUTO, target.kind)}
    found = named(classes, given)
    if len(found) != 1:
        listed = ", ".join(sorted(found or classes)) or "none"
        raise UsageError(f"--on: found {given!r}, allowed a part of the name of one of {listed}")
    return next(iter(found.values()))
