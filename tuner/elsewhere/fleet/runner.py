"""A run on a fleet: its backends, whose targets let nodes compile and measure, and its runner.

``fleet_backends`` gives FleetBackends, whose FleetTarget makes a TrialRunner for each run; its ``NodeWork``
hands trials to the ``driver``.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, final

from tuner.core.candidate import AUTO, TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import Failure, OpPlace, TunerError, UsageError
from tuner.core.interfaces import AbstractRunner, Artifact, Effort, FinalTimes, Script
from tuner.core.machine import Machine, PresentLoad, Processors
from tuner.core.plausibility import most_flop_per_s
from tuner.core.problem import Problem
from tuner.core.requests import FleetRequest
from tuner.core.roofline import Roofline
from tuner.core.runs import Baseline, ChosenStrategy, Compiler, RunSettings
from tuner.core.trials import StoredTrial
from tuner.elsewhere.fleet.driver import Driver, DriverConnection, alive_nodes, busy_devices
from tuner.elsewhere.fleet.server import require_packages, server_of
from tuner.elsewhere.fleet.work import (
    BASELINE,
    COMPILE,
    EVALUATE,
    REMEASURE,
    ROOFLINE,
    Compiled,
    FleetWork,
    Outcome,
    compiler_build_of,
    hash_of,
    packed,
)
from tuner.runtime.timing_lock import LockWait
from tuner.runtime.workers.protocol import Reply
from tuner.runtime.workers.runner import AbstractTrialWork, RunnerOrder, TrialRunner
from tuner.runtime.workers.services import Group, work_seed
from tuner.targets.backends import Backends
from tuner.targets.target import (
    Bind,
    OneBaseline,
    Plan,
    RunnerChildren,
    RunnerSettings,
    Target,
    TargetStatus,
)

if TYPE_CHECKING:
    from tuner.core.compiled_code import PredictedCycles

Named = TypeVar("Named")
PENDING_OF_ONE: Final = 3  # proposals in flight of a run on one device: docs/concepts/fleet.md
NO_NODE: Final = "no node of the fleet measures for it; start one: tuner fleet worker --measure"
PENDING_PER_DEVICE: Final = 2  # of several devices; the run has as many more as one device


@dataclass
class _Flight:
    """A trial whose work was begun before ``TrialRunner.finish`` asked for it."""

    effort: Effort
    code: str = ""  # hash of its artifact, once that is known
    is_evaluated_early: bool = False
    is_awaited: bool = False  # its evaluation counts


@final
class NodeWork(AbstractTrialWork):
    """Trials are compiled, verified and timed by the nodes of a fleet.

    Work is queued early. A trial gets the outcome that it would get on one machine: outcomes are taken in the
    order of trials, and an early evaluation of code equal to an earlier trial's is dropped.
    """

    def __init__(self, order: RunnerOrder, driver: Driver, work_template: FleetWork) -> None:
        self._order = order
        self._driver = driver
        self._work_template = work_template
        self._flights: dict[int, _Flight] = {}  # by number, in the order of trials
        driver.on_outcomes = self._begin_evaluations

    def begin(self, number: int, script: Script, effort: Effort) -> None:
        self._begin_compile(number, script)
        self._flights[number] = _Flight(effort)

    def is_begun(self, number: int) -> bool:
        return (number, COMPILE) in self._driver.known

    def compiled(self, number: int, script: Script) -> Reply:
        self._begin_compile(number, script)  # known work is not queued again, here and below
        compiled = self._outcome(number, COMPILE)
        if isinstance(compiled.value, Failure):
            return Reply(compiled.value, compiled.seconds)
        return Reply(self._driver.artifacts[number], compiled.seconds)

    def evaluated(self, number: int, artifact: Artifact, effort: Effort, seed: int) -> Reply:
        code = self._driver.known[(number, COMPILE)].value
        assert isinstance(code, Compiled)
        self._begin_evaluation(number, effort, code)
        if number in self._flights:
            self._flights[number].is_awaited = True
        return self._outcome(number, EVALUATE).reply

    def forget(self, number: int) -> None:
        flight = self._flights.pop(number, None)
        if flight is not None and flight.is_evaluated_early and not flight.is_awaited:
            self._driver.drop(number, EVALUATE)  # its code was found equal to a finished trial's
        self._driver.artifacts.pop(number, None)

    def close(self) -> None:
        """Ends the run's part in the connection; queued jobs go on, for a process that resumes the run."""
        self._driver.close()
        self._flights.clear()

    def _begin_compile(self, number: int, script: Script) -> None:
        work = replace(self._work_template, number=number, stage=COMPILE, blobs=(script.sha256,))
        self._driver.begin(work, (script.text.encode(),))

    def _begin_evaluation(self, number: int, effort: Effort, compiled: Compiled) -> None:
        work = replace(
            self._work_template,
            number=number,
            stage=EVALUATE,
            seed=work_seed(self._work_template.seed, number),
            blobs=(compiled.blob,),
            effort=effort,
            slowest_s=effort.stop_above_s,
        )
        self._driver.begin(work)

    def _outcome(self, number: int, stage: str) -> Outcome:
        while (outcome := self._driver.known.get((number, stage))) is None:
            self._driver.wait()
        return outcome

    def recompiled(self, scripts: tuple[Script, ...]) -> Sequence[Artifact | Failure | None]:
        works = [replace(self._work_template, stage=COMPILE, blobs=(script.sha256,)) for script in scripts]
        pairs = zip(works, scripts, strict=True)
        queued = [self._driver.ask(work, (script.text.encode(),)) for work, script in pairs]
        for work in queued:
            self._driver.awaited(work)
        return [self._driver.artifacts.pop(work.number, None) for work in queued]

    def timed(self, group: Group, effort: Effort, seed: int, slowest_s: float | None) -> FinalTimes | Failure:
        blobs = tuple(map(packed, group.artifacts))
        work = replace(
            self._work_template,
            stage=REMEASURE,
            seed=seed,
            blobs=tuple(map(hash_of, blobs)),
            effort=effort,
            slowest_s=slowest_s,
            has_baseline=group.has_baseline,
        )
        value = self._driver.outcome(work, blobs).value
        assert isinstance(value, FinalTimes | Failure)
        return value

    def _begin_evaluations(self) -> None:
        """Queues the evaluation of compiled code as soon as the code is known, not in trial order.

        Of trials with equal code only one is evaluated.
        """
        for number, flight in self._flights.items():
            known = self._driver.known.get((number, COMPILE))
            if flight.code or known is None or not isinstance(known.value, Compiled):
                continue
            code = known.value.artifact_sha256
            is_repeated = any(other.code == code for other in self._flights.values())
            flight.code = code
            if not is_repeated and not known.value.is_refused and self._order.recall("", code) is None:
                flight.is_evaluated_early = True
                self._begin_evaluation(number, flight.effort, known.value)


def named(machines: Mapping[str, Named], phrase: str) -> dict[str, Named]:
    """Returns name -> value of the machine called ``phrase``, else of all whose names contain ``phrase``.

    Ignores case in the second case; {} if no name matches.
    """
    if phrase in machines:
        return {phrase: machines[phrase]}
    return {name: value for name, value in machines.items() if phrase.lower() in name.lower()}


@final
class FleetTarget(Target):
    """A target, or a recording, whose candidates the nodes of a fleet compile and measure.

    Plans, scripts and code are those of the target on this machine. Used by one thread.
    """

    def __init__(self, own: Target, fleet: FleetRequest) -> None:
        self._own = own
        self._fleet = fleet
        self._driven: dict[Problem, tuple[Driver, FleetWork]] = {}  # by the problem of the run
        self._of_details: dict[str, FleetTarget] = {}
        self.name = own.name
        self.default_chip = own.default_chip
        self.chips = own.chips
        self.sources = own.sources
        self.details = own.details
        self.programs = own.programs
        self.untimed = own.untimed
        self.needs_local_resources = own.needs_local_resources
        self.times_processors = own.times_processors
        self.baselines = OneBaseline("--fleet: nodes compare with their default library")

    def of_detail(self, detail: str) -> Target:
        own = self._own.of_detail(detail)
        if own is self._own:
            return self
        if detail not in self._of_details:
            self._of_details[detail] = FleetTarget(own, self._fleet)
        return self._of_details[detail]

    def status(self) -> TargetStatus:
        return status_on_fleet(self._own, self._fleet)

    def tools(self) -> str:
        return self._own.tools()

    def is_timed(self) -> bool:
        return self.status().is_timed

    def require_types(self, problem: Problem, target: TargetName) -> None:
        self._own.require_types(problem, target)

    def plan(self, settings: RunSettings, machine: Machine) -> Plan:
        return self._own.plan(settings, machine)

    def bind(
        self, strategies: tuple[ChosenStrategy, ...], problem: Problem, threads: int, machine: Machine
    ) -> Bind:
        return self._own.bind(strategies, problem, threads, machine)

    def children(self, target: TargetName, problem: Problem, threads: int) -> RunnerChildren:
        return self._own.children(target, problem, threads)

    def source(self, problem: Problem, script: str) -> str:
        return self._own.source(problem, script)

    def load(self, problem: Problem, trial: StoredTrial, program: KernelCode | None) -> Callable[..., object]:
        return self._own.load(problem, trial, program)

    def code(self, target: TargetName, problem: Problem, script: Script) -> str:
        return self._own.code(target, problem, script)

    def assembly(self, code: str, program: KernelCode | None) -> str:
        return self._own.assembly(code, program)

    def predicted(self, problem: Problem, program: KernelCode) -> "PredictedCycles | None":
        return self._own.predicted(problem, program)

    def machine(self, target: TargetName) -> Machine:
        """Returns the machine of the nodes that measure for ``target``.

        Raises UsageError if there are none, machines of several classes, or fewer devices than asked for.
        """
        return self._machine_and_devices(target)[0]

    def compiler(self, target: TargetName) -> Compiler:
        """Returns this installation's compiler build. Raises UsageError if no node compiles with it."""
        compiler = self._own.compiler(target)
        compiler_build = compiler_build_of(compiler)
        compiler_builds = [
            node.compiler_build
            for node in alive_nodes(self._fleet)
            if node.slots and node.target == target.text
        ]
        if compiler_build not in compiler_builds:
            builds_text = "; ".join(sorted(set(compiler_builds))) or "none"
            raise UsageError(
                f"fleet: no node compiles {target.text} as {compiler_build}; "
                f"compiler builds of the nodes: {builds_text}",
                f"tuner fleet worker --target {shlex.quote(target.text)} --compile 4",
            )
        return compiler

    def runners(
        self, orders: tuple[RunnerOrder, ...], how: tuple[RunnerSettings, ...]
    ) -> tuple[AbstractRunner, ...]:
        """Returns a runner per run of a campaign, all for one target, on one shared connection.

        ``how``: settings per run, with its uuid. Raises UsageError if another process drives a run, and if no
        machine, machines of several classes, or fewer devices than asked for measure for the target.
        """
        target = orders[0].target
        machine, measuring = self._machine_and_devices(target)
        compiler_build = compiler_build_of(self._own.compiler(target))
        busy = busy_devices(self._fleet, machine.name, measuring)
        devices = tuple(sorted(busy, key=lambda device: (busy[device], device))[: self._fleet.devices])
        shared = DriverConnection(self._fleet.url)
        runners: list[AbstractRunner] = []
        for index, (order, of_run) in enumerate(zip(orders, how, strict=True)):
            limit = most_flop_per_s(order.problem, machine, of_run.threads)
            # consecutive trials are of different runs, and go to different devices
            first = index % len(devices)
            rotated = devices[first:] + devices[:first]
            driver = Driver(self._fleet, of_run.run, rotated, of_run.report_fleet, limit, shared)
            work_template = FleetWork(
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
            self._driven[order.problem] = (driver, work_template)
            work = NodeWork(order, driver, work_template)
            runners.append(TrialRunner(order, work, of_run.seed))
        return tuple(runners)

    def baseline(self, problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
        baseline = self._outcome_of_run(problem, BASELINE)
        assert isinstance(baseline, Baseline)
        return baseline

    def roofline(self, problem: Problem, threads: int, wait: LockWait) -> Roofline:
        roofline = self._outcome_of_run(problem, ROOFLINE)
        assert isinstance(roofline, Roofline)
        return roofline

    def _outcome_of_run(self, problem: Problem, stage: str) -> object:
        if problem not in self._driven:  # a campaign asks before its runs begin
            raise TunerError(f"{problem.key}: no run of the fleet computes it yet")
        driver, work_template = self._driven[problem]
        value = driver.outcome(replace(work_template, stage=stage)).value
        if isinstance(value, Failure):
            raise TunerError(value.reason)
        return value

    def _machine_and_devices(self, target: TargetName) -> tuple[Machine, tuple[str, ...]]:
        """Returns the machine that measures for ``target``, and the devices to use; reads the nodes once.

        Both come from one reading, since a node may be lost at any time.
        """
        wanted = self._fleet.machine
        nodes = [node for node in alive_nodes(self._fleet) if node.device and node.target == target.text]
        classes = named({node.machine.name: node.machine for node in nodes}, wanted)
        if not classes:
            phrase = f" on {wanted!r}" if wanted else ""
            raise UsageError(
                f"fleet: no node measures {target.text}{phrase}",
                f"tuner fleet worker --target {shlex.quote(target.text)} --measure",
            )
        if len(classes) > 1:
            raise UsageError(f"fleet: nodes measure on {', '.join(sorted(classes))}", "choose with --machine")
        (machine,) = classes.values()
        devices = tuple(sorted({node.device for node in nodes if node.machine.name == machine.name}))
        if len(devices) < self._fleet.devices:
            allowed = f"1 to {len(devices)}" if len(devices) > 1 else len(devices)
            raise UsageError(
                f"devices: found {self._fleet.devices}, allowed {allowed}: nodes measure on "
                f"so many of {machine.name!r}"
            )
        return machine, devices


def require_server(url: str) -> None:
    """Raises UsageError for a URL that is not of a PostgreSQL server, and for a missing package."""
    server_of(url)
    require_packages()


def pending_limit(devices: int) -> int:
    """Returns how many proposals of a run may be without an outcome if the run uses ``devices`` devices."""
    if devices == 1:
        return PENDING_OF_ONE
    return PENDING_PER_DEVICE * (devices + 1)


@final
class FleetBackends(Backends):
    """The backends of a run on a fleet: nodes compile and time its candidates, and time its baseline."""

    def __init__(self, own: Backends, fleet: FleetRequest) -> None:
        self._own = own
        self._fleet = fleet
        self.targets = {name: FleetTarget(target, fleet) for name, target in own.targets.items()}

    def replay_of(self, file: Path) -> tuple[Target, TargetName]:
        target, name = self._own.replay_of(file)
        return FleetTarget(target, self._fleet), name

    def machine(self) -> Machine:
        # whether a problem fits in memory is checked by nodes: 0 bytes are an unknown size
        return replace(self._own.machine(), memory_bytes=0)

    def processors(self) -> Processors:
        return self._own.processors()

    def present_load(self) -> PresentLoad:
        return self._own.present_load()

    def load_average(self) -> float | None:
        return self._own.load_average()

    def apply(
        self, script: str, payload: str, allows_effects: bool = False, trailing: tuple[str, ...] = ()
    ) -> str:
        return self._own.apply(script, payload, allows_effects, trailing)

    def failing_op(self, script: str, payload: str) -> OpPlace | None:
        return self._own.failing_op(script, payload)


def fleet_backends(backends: Backends, fleet: FleetRequest) -> Backends:
    """Returns backends whose targets and recordings let the nodes of a fleet compile and time."""
    return FleetBackends(backends, fleet)


def status_on_fleet(target: Target, fleet: FleetRequest) -> TargetStatus:
    """Returns the status of a target on a fleet: available if nodes measure for it.

    Its ``chip`` is that of the nodes' devices, "" for a CPU and for devices of several chips.
    """
    own = target.status()
    nodes = [node for node in alive_nodes(fleet) if TargetName.parse(node.target).is_of(target.name)]
    chips = {node.machine.chip for node in nodes if node.device}
    return replace(
        own,
        is_available=bool(chips),
        # a target that is missing here says "not timed" for that reason alone: nodes do time it
        is_timed=own.is_timed or not own.is_available,
        chip=chips.pop() if len(chips) == 1 else "",
        reason="on the fleet" if chips else NO_NODE,
        missing="",
    )


def target_on(fleet: FleetRequest, machine: str, asked: str) -> TargetName:
    """Returns the target that the nodes of one class of machines measure on, such as cuda:sm_90.

    ``machine``: the name of the class, or a part of it; ``asked``: the target without a chip, such as "cuda",
    or "auto". Raises UsageError unless exactly one class matches.
    """
    measuring = [node for node in alive_nodes(fleet) if node.device]
    targets = [(node.machine.name, TargetName.parse(node.target)) for node in measuring]
    classes = {f"{name} ({target.text})": target for name, target in targets if asked in (AUTO, target.kind)}
    matching = named(classes, machine)
    if len(matching) != 1:
        listed = ", ".join(sorted(matching or classes)) or "none"
        raise UsageError(f"--on: found {machine!r}, allowed a part of the name of one of {listed}")
    return next(iter(matching.values()))
