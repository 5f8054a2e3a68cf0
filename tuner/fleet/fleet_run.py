"""The parts of a run, or of a group of runs, that nodes of a fleet provide."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tuner.core.errors import Failure, TunerError, UsageError
from tuner.core.machine import Compiler, Machine, Roofline
from tuner.core.possible_outcome import most_flop_per_s
from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.core.target_name import TargetName
from tuner.fleet.driver import Driver, FleetRequest, alive_nodes, busy_devices
from tuner.fleet.driver_connection import DriverConnection
from tuner.fleet.tables import FleetNode
from tuner.fleet.work import BASELINE, COMPILE, ROOFLINE, FleetWork, compiler_build_of
from tuner.tuning.outcome_source import BenchSettings, OutcomeSource

if TYPE_CHECKING:
    from tuner.core.bench import AbstractBench
    from tuner.workers.in_flight import BenchOrder

Named = TypeVar("Named")


def named(machines: Mapping[str, Named], phrase: str) -> dict[str, Named]:
    """Returns the entry whose name is ``phrase``, else all entries whose name contains ``phrase``.

    The second search ignores upper and lower case; every name contains an empty phrase.
    """
    if phrase in machines:
        return {phrase: machines[phrase]}
    return {name: each for name, each in machines.items() if phrase.lower() in name.lower()}


class FleetRun:
    """The parts of a run, or of a group of runs, that a fleet provides: machine, compiler, benches, baseline.

    One process drives the runs, from one thread.
    """

    def __init__(self, own: OutcomeSource, fleet: FleetRequest) -> None:
        self._own = own
        self._fleet = fleet
        self._driven: dict[Problem, tuple[Driver, FleetWork]] = {}  # by the problem of the run

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
        (bench,) = self.benches((order,), (how,))
        return bench

    def benches(
        self, orders: "tuple[BenchOrder, ...]", how: tuple[BenchSettings, ...]
    ) -> "tuple[AbstractBench, ...]":
        """Returns a bench for each run of a group, which has one target; all share one connection.

        ``how``: settings of each run, with its uuid. Raises UsageError while another process drives one of
        the runs, and where ``machine`` does.
        """
        from tuner.fleet.bench import FleetBench

        target = orders[0].target
        machine = self.machine(target)
        compiler_build = compiler_build_of(self._own.compiler(target))
        devices = self._devices(target, machine)
        shared = DriverConnection(self._fleet.url)
        benches: list[AbstractBench] = []
        for place, (order, of_run) in enumerate(zip(orders, how, strict=True)):
            limit = most_flop_per_s(order.problem, machine, of_run.threads)
            # consecutive trials are of different runs, and go to different devices
            first = place % len(devices)
            rotated = devices[first:] + devices[:first]
            driver = Driver(self._fleet, of_run.run, rotated, of_run.report_fleet, limit, shared)
            plain = FleetWork(
                run=of_run.run,
                number=0,
                stage=COMPILE,
                compiler_build=compiler_build,
                machine=machine.name,
                problem=order.problem,
                target=target,
                threads=of_run.threads,
                seed=of_run.seed,
            )
            self._driven[order.problem] = (driver, plain)
            benches.append(FleetBench(order, driver, plain))
        return tuple(benches)

    def baseline(self, problem: Problem, _threads: int, _seed: int) -> Baseline:
        """Times the baseline library on a device of a run, with the threads and the seed of its bench.

        The bench of ``problem`` has to exist. Raises TunerError where timing fails.
        """
        found = self._asked(problem, BASELINE)
        assert isinstance(found, Baseline)
        return found

    def roofline(self, problem: Problem, _threads: int) -> Roofline:
        """Measures the roofline (peak arithmetic rate and bandwidth) of a run's machine.

        The bench of ``problem`` has to exist. Raises TunerError where measuring fails.
        """
        found = self._asked(problem, ROOFLINE)
        assert isinstance(found, Roofline)
        return found

    def _asked(self, problem: Problem, stage: str) -> object:
        driver, plain = self._driven[problem]
        found = driver.outcome(replace(plain, stage=stage)).value
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
