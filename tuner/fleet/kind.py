"""Outcomes from a fleet: nodes compile and measure; everything else of a run stays as without a fleet."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from tuner.core.errors import Failure, TunerError, UsageError
from tuner.core.machine import Compiler, Machine, Roofline
from tuner.core.possible_outcome import most_flop_per_s
from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.core.target_name import TargetName
from tuner.fleet.driver import Driver, FleetRequest, alive_nodes, busy_devices
from tuner.fleet.tables import FleetNode
from tuner.fleet.work import BASELINE, COMPILE, ROOFLINE, FleetWork, compiler_build_of
from tuner.tuning.composition import Composition
from tuner.tuning.outcome_source import BenchSettings, OutcomeSource
from tuner.tuning.target_choice import AUTO
from tuner.tuning.target_kind import TargetKind, TargetStatus, no_choice

if TYPE_CHECKING:
    from tuner.core.bench import AbstractBench
    from tuner.workers.in_flight import BenchOrder

Named = TypeVar("Named")
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


def named(machines: Mapping[str, Named], phrase: str) -> dict[str, Named]:
    """Returns the entry whose name is ``phrase``, else all entries whose name contains ``phrase``.

    The second search ignores upper and lower case; every name contains an empty phrase.
    """
    if phrase in machines:
        return {phrase: machines[phrase]}
    return {name: each for name, each in machines.items() if phrase.lower() in name.lower()}


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


class FleetRun:
    """The parts of a run that a fleet provides: machine, compiler, bench, baseline and roofline.

    One process drives the run, from one thread.
    """

    def __init__(self, own: OutcomeSource, fleet: FleetRequest) -> None:
        self._own = own
        self._fleet = fleet
        self._driver: Driver | None = None
        self._plain: FleetWork | None = None

    def machine(self, target: TargetName) -> Machine:
        """Returns the class of machine on which the run measures, from the nodes that measure ``target``.

        Raises UsageError where no node measures the target, where several classes match, and for too few
        devices.
        """
        wanted = self._fleet.machine
        found = named({node.machine.name: node.machine for node in self._measuring(target)}, wanted)
        if not found:
            phrase = f" on {wanted!r}" if wanted else ""
            raise UsageError(
                f"fleet: no node measures {target.text}{phrase}",
                f"tuner fleet worker --target {shlex.quote(target.text)} --measure",
            )
        if len(found) > 1:
            raise UsageError(f"fleet: nodes measure on {', '.join(sorted(found))}", "choose with --machine")
        (machine,) = found.values()
        self._require_devices(target, machine)
        return machine

    def compiler(self, target: TargetName) -> Compiler:
        """Returns the compiler of this installation, if a node compiles for ``target`` with an equal one.

        Raises UsageError unless such a node has the same compiler build, which generates the same code.
        """
        compiler = self._own.compiler(target)
        compiler_build = compiler_build_of(compiler)
        compiler_builds = [
            node.compiler_build for node in self._alive() if node.slots and node.target == target.text
        ]
        if compiler_build not in compiler_builds:
            found = "; ".join(sorted(set(compiler_builds))) or "none"
            raise UsageError(
                f"fleet: no node compiles {target.text} as {compiler_build}; "
                f"compiler builds of the nodes: {found}",
                f"tuner fleet worker --target {shlex.quote(target.text)} --compile 4",
            )
        return compiler

    def bench(self, order: "BenchOrder", how: BenchSettings) -> "AbstractBench":
        """Returns a bench whose candidates are compiled and timed by nodes, for one run.

        Raises UsageError while another process drives the run, and where ``machine`` does.
        """
        from tuner.fleet.bench import FleetBench

        machine = self.machine(order.target)
        compiler_build = compiler_build_of(self._own.compiler(order.target))
        devices = self._devices(order.target, machine)
        limit = most_flop_per_s(order.problem.dtype, machine, how.threads)
        self._driver = Driver(self._fleet, how.run, devices, how.report_fleet, limit)
        self._plain = FleetWork(
            run=how.run,
            number=0,
            stage=COMPILE,
            compiler_build=compiler_build,
            machine=machine.name,
            problem=order.problem,
            target=order.target,
            threads=how.threads,
            seed=how.seed,
        )
        return FleetBench(order, self._driver, self._plain)

    def baseline(self, _problem: Problem, _threads: int, _seed: int) -> Baseline:
        """Times the baseline library on a device of the run, for the problem and seed of ``bench``.

        ``bench`` has to be called before; the arguments are ignored. Raises TunerError where timing fails.
        """
        found = self._asked(BASELINE)
        assert isinstance(found, Baseline)
        return found

    def roofline(self, _problem: Problem, _threads: int) -> Roofline:
        """Measures the roofline (peak arithmetic rate and bandwidth) of the run's machine.

        ``bench`` has to be called before; the arguments are ignored. Raises TunerError where measuring fails.
        """
        found = self._asked(ROOFLINE)
        assert isinstance(found, Roofline)
        return found

    def _asked(self, stage: str) -> object:
        assert self._driver is not None
        assert self._plain is not None
        found = self._driver.outcome(replace(self._plain, stage=stage)).value
        if isinstance(found, Failure):
            raise TunerError(found.reason)
        return found

    def _alive(self) -> tuple[FleetNode, ...]:
        return alive_nodes(self._fleet)

    def _measuring(self, target: TargetName) -> tuple[FleetNode, ...]:
        return tuple(node for node in self._alive() if node.device and node.target == target.text)

    def _require_devices(self, target: TargetName, machine: Machine) -> tuple[str, ...]:
        """Returns all devices of a class of machines. Raises UsageError where the run asks for more."""
        nodes = [node for node in self._measuring(target) if node.machine.name == machine.name]
        devices = tuple(sorted({node.device for node in nodes}))
        if len(devices) < self._fleet.devices:
            allowed = f"1 to {len(devices)}" if len(devices) > 1 else len(devices)
            raise UsageError(
                f"devices: found {self._fleet.devices}, allowed {allowed}: nodes measure on "
                f"so many of {machine.name!r}"
            )
        return devices

    def _devices(self, target: TargetName, machine: Machine) -> tuple[str, ...]:
        """Returns the devices of the run: those with the fewest jobs."""
        busy = busy_devices(self._fleet, machine.name, self._require_devices(target, machine))
        return tuple(sorted(busy, key=lambda device: (busy[device], device))[: self._fleet.devices])
