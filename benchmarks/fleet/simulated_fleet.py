"""A fleet as a discrete-event simulation: runs that propose in order, database, compile children, devices.

A trial is a process of the simulation. A run proposes a trial as soon as fewer than ``pending`` of its trials
wait for their outcome, and outcomes are reported to the run in the order of proposals.
"""

import math
import random
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import final

import simpy
from simpy.resources.resource import Request

Events = Generator[simpy.Event, object, None]


@dataclass(frozen=True)
class SimulatedFleet:
    """The parts of a fleet, and the times that each activity takes."""

    compilers: int = 64  # children that compile, of all nodes
    devices: int = 4
    runs: int = 8
    pending: int = 3  # trials of a run that wait for their outcome, at most
    is_pooled: bool = False  # a run's trials go to any device, not to one of its own
    compile_s: tuple[float, float] = (0.06, 0.3)  # uniform
    measure_s: tuple[float, float] = (0.1, 2.0)  # log-uniform, verification included
    failing: float = 0.2  # share of trials that end when they are compiled: failures and known code
    hop_s: float = 0.03  # from a job that is stored to a node that has it: notification, fetch
    gap_s: float = 0.03  # of a node between two jobs: outcome stored, next one fetched
    poll_s: float = 0.0  # an idle measuring node polls so often; 0: it is notified
    server_s: float = 0.0024  # of one core of the database for a job
    server_cores: int = 1
    losses_per_hour: float = 0.0  # of each node, while it works
    lease_s: float = 30.0  # until what a lost node had is given to another
    minutes: float = 10.0


@dataclass(frozen=True)
class FleetFigures:
    """The results of a simulated fleet."""

    idle: float  # share of the devices' time in which nothing is measured
    trials_per_s: float
    jobs_per_s: float
    server_busy: float  # share of its cores
    slowest_run: float  # trials of the slowest run over those of the fastest
    unknown: float  # outcomes of its run that a proposal had to do without, mean
    latency_s: float  # from proposal to reported outcome, mean


@dataclass
class _Run:
    number: int
    home: simpy.Resource  # devices that its trials go to
    proposed_s: list[float] = field(default_factory=list)  # by trial
    has_outcome: set[int] = field(default_factory=set)  # trials whose outcome is not reported to it yet
    told: int = 0


def simulate(fleet: SimulatedFleet, seed: int = 0) -> FleetFigures:
    """Simulates a fleet. Equal seeds give trials of equal durations, whatever the fleet."""
    return _Simulation(fleet, seed).figures()


@final
class _Simulation:
    """The state of one simulation, which runs once."""

    def __init__(self, fleet: SimulatedFleet, seed: int) -> None:
        self._fleet, self._seed = fleet, seed
        self._clock = simpy.Environment()
        self._server = simpy.Resource(self._clock, fleet.server_cores)
        self._compilers = simpy.Resource(self._clock, fleet.compilers)
        count, size = (1, fleet.devices) if fleet.is_pooled else (fleet.devices, 1)
        homes = [simpy.Resource(self._clock, size) for _ in range(count)]
        self._runs = tuple(_Run(number, homes[number % count]) for number in range(fleet.runs))
        self._jobs = self._unknown = 0
        self._measured_s = self._server_s = self._waited_s = 0.0

    def figures(self) -> FleetFigures:
        """Lets the minutes pass."""
        fleet, end_s = self._fleet, 60 * self._fleet.minutes
        for run in self._runs:
            self._propose(run)
        self._clock.run(until=end_s)
        told = [run.told for run in self._runs]
        return FleetFigures(
            idle=1 - self._measured_s / (fleet.devices * end_s),
            trials_per_s=sum(told) / end_s,
            jobs_per_s=self._jobs / end_s,
            server_busy=self._server_s / (fleet.server_cores * end_s),
            slowest_run=min(told) / max(1, *told),
            unknown=self._unknown / sum(len(run.proposed_s) for run in self._runs),
            latency_s=self._waited_s / max(1, sum(told)),
        )

    def _propose(self, run: _Run) -> None:
        """Fills a run up to its limit."""
        while len(run.proposed_s) - run.told < self._fleet.pending:
            number = len(run.proposed_s)
            self._unknown += number - run.told
            run.proposed_s.append(self._clock.now)
            self._clock.process(self._trial(run, number))

    def _trial(self, run: _Run, number: int) -> Events:
        fleet = self._fleet
        chance = random.Random(f"{self._seed} {run.number} {number}")
        compile_s = chance.uniform(*fleet.compile_s)
        shortest_s, longest_s = fleet.measure_s
        measure_s = shortest_s * math.exp(chance.uniform(0, math.log(longest_s / shortest_s)))
        is_failing = chance.random() < fleet.failing
        yield from self._node_works(self._compilers, compile_s, chance)
        if not is_failing:
            yield from self._node_works(run.home, measure_s, chance)
        yield self._clock.timeout(fleet.hop_s)
        self._settle(run, number)

    def _node_works(self, nodes: simpy.Resource, work_s: float, chance: random.Random) -> Events:
        """Stores a job, waits for a node, and does the work.

        A lost node holds the job until its lease ends.
        """
        fleet = self._fleet
        self._jobs += 1
        yield from self._server_works(fleet.server_s / 2)
        yield self._clock.timeout(fleet.hop_s)
        while True:
            idle = int(nodes.capacity) - nodes.count
            node = nodes.request()
            yield node
            if idle and nodes is not self._compilers:
                yield self._clock.timeout(min(chance.uniform(0, fleet.poll_s) for _ in range(idle)))
            if chance.random() >= work_s * fleet.losses_per_hour / 3600:
                break
            yield self._clock.timeout(chance.uniform(0, work_s) + fleet.lease_s)
            nodes.release(node)
        yield self._clock.timeout(work_s)
        if nodes is not self._compilers:
            self._measured_s += work_s
        yield from self._server_works(fleet.server_s / 2)
        self._clock.process(self._release(nodes, node))

    def _release(self, nodes: simpy.Resource, node: Request) -> Events:
        """Frees a node when it could take its next job."""
        yield self._clock.timeout(self._fleet.gap_s)
        nodes.release(node)

    def _server_works(self, work_s: float) -> Events:
        with self._server.request() as core:
            yield core
            yield self._clock.timeout(work_s)
            self._server_s += work_s

    def _settle(self, run: _Run, number: int) -> None:
        """Reports to a run the outcomes that are next in order; the run then proposes."""
        run.has_outcome.add(number)
        while run.told in run.has_outcome:
            run.has_outcome.remove(run.told)
            self._waited_s += self._clock.now - run.proposed_s[run.told]
            run.told += 1
        self._propose(run)
