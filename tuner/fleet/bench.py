"""The bench of a fleet: nodes compile and evaluate in any order; records come in the order of trials."""

from collections import deque
from dataclasses import dataclass, replace

from tuner.core.bench import AbstractBench, BoundRecord, FinalTimes
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure
from tuner.core.target import Artifact, Effort, Script
from tuner.fleet.artifacts import hash_of, packed
from tuner.fleet.driver import Driver
from tuner.fleet.work import COMPILE, EVALUATE, REMEASURE, Compiled, FleetWork, Outcome
from tuner.workers.evaluation import Evaluation, work_seed
from tuner.workers.group_timing import Group, RemeasurementRounds
from tuner.workers.in_flight import BenchOrder, Ticket


@dataclass
class _Flight:
    number: int
    ticket: Ticket
    effort: Effort
    code: str = ""  # hash of its artifact, once that is known
    is_evaluated_early: bool = False


class FleetBench(AbstractBench):
    """A bench (compiles, verifies and times a run's candidates) whose work is done by the nodes of a fleet.

    Queues each script when its trial starts, and each artifact as soon as it is compiled. A trial gets the
    outcome that it would get on one machine: earlier trials of equal code are looked up in the order of
    trials. Work that an earlier process of the run has queued is not queued again.
    """

    def __init__(self, order: BenchOrder, driver: Driver, plain: FleetWork) -> None:
        """Takes in ``plain`` the work of the run, without the number, stage, blobs and effort of a trial."""
        self._order = order
        self._driver = driver
        self._plain = plain
        self._finals = RemeasurementRounds(plain.seed, self._recompiled, self._timed)
        self._flights: deque[_Flight] = deque()
        driver.on_outcomes = self._begin_evaluations

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        """Binds a candidate to its script and queues the script for compilation; does not wait.

        ``number`` is that of the trial. Nothing is queued where the outcome is known already, or an equal
        script of an unfinished trial is queued.
        """
        flight = _Flight(number, Ticket(self._order, candidate), effort)
        is_repeated = any(other.ticket.script == flight.ticket.script for other in self._flights)
        if flight.ticket.record is None and not is_repeated:
            self._begin_compile(number, flight.ticket.script)
        self._flights.append(flight)

    def finish(self) -> BoundRecord:
        """Waits for the earliest started candidate that is not finished; returns its record and script.

        Nodes continue with later candidates meanwhile.
        """
        flight = self._flights[0]
        ticket = flight.ticket
        if (flight.number, COMPILE) not in self._driver.known:
            ticket.recall_script()  # the one of equal script may be finished and stored by now
        if ticket.record is None:
            compiled, seconds = self._compiled(flight.number, ticket.script)
            ticket.take_compiled(compiled, seconds)
        if ticket.record is None:
            evaluated = self._evaluated(flight)
            assert isinstance(evaluated.value, Evaluation | Failure)
            ticket.take_evaluation(evaluated.value, evaluated.seconds)
        elif flight.is_evaluated_early:  # its code became known since
            self._driver.drop(flight.number, EVALUATE)
        self._driver.artifacts.pop(flight.number, None)
        self._flights.popleft()
        return ticket.finished

    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        """Times the top trials again, interleaved, on one device of the run; returns their final times.

        Scripts without an artifact are compiled first. The time of a trial that fails is None.
        """
        return self._finals.times(top_trials, effort)

    def close(self) -> None:
        """Closes the connection to the fleet; queued work continues, for a process that resumes the run."""
        self._driver.close()
        self._flights.clear()

    def _begin_compile(self, number: int, script: Script) -> None:
        work = replace(self._plain, number=number, stage=COMPILE, blobs=(script.sha256,))
        self._driver.begin(work, (script.text.encode(),))

    def _begin_evaluation(self, flight: _Flight, compiled: Compiled) -> None:
        work = replace(
            self._plain,
            number=flight.number,
            stage=EVALUATE,
            seed=work_seed(self._plain.seed, flight.number),
            blobs=(compiled.blob,),
            effort=flight.effort,
            slowest_s=flight.effort.stop_above_s,
        )
        self._driver.begin(work)

    def _compiled(self, number: int, script: Script) -> tuple[Artifact | Failure, float]:
        """Waits for the artifact of a script."""
        self._begin_compile(number, script)
        found = self._outcome(number, COMPILE)
        if isinstance(found.value, Failure):
            return found.value, found.seconds
        return self._driver.artifacts[number], found.seconds

    def _evaluated(self, flight: _Flight) -> Outcome:
        compiled = self._driver.known[(flight.number, COMPILE)].value
        assert isinstance(compiled, Compiled)
        self._begin_evaluation(flight, compiled)
        return self._outcome(flight.number, EVALUATE)

    def _outcome(self, number: int, stage: str) -> Outcome:
        while (found := self._driver.known.get((number, stage))) is None:
            self._driver.wait()
        return found

    def _recompiled(self, scripts: tuple[Script, ...]) -> list[Artifact | None]:
        """Compiles scripts outside of trials; None for a script that no longer compiles."""
        works = [replace(self._plain, stage=COMPILE, blobs=(script.sha256,)) for script in scripts]
        pairs = zip(works, scripts, strict=True)
        asked = [self._driver.ask(work, (script.text.encode(),)) for work, script in pairs]
        for work in asked:
            self._driver.selected(work)
        return [self._driver.artifacts.pop(work.number, None) for work in asked]

    def _timed(
        self, group: Group, effort: Effort, seed: int, slowest_s: float | None
    ) -> FinalTimes | Failure:
        blobs = tuple(packed(artifact) for artifact in group.artifacts)
        work = replace(
            self._plain,
            stage=REMEASURE,
            seed=seed,
            blobs=tuple(map(hash_of, blobs)),
            effort=effort,
            slowest_s=slowest_s,
            has_baseline=group.has_baseline,
        )
        found = self._driver.outcome(work, blobs).value
        assert isinstance(found, FinalTimes | Failure)
        return found

    def _begin_evaluations(self) -> None:
        """Queues the evaluation of artifacts that were compiled meanwhile."""
        for flight in self._flights:
            found = self._driver.known.get((flight.number, COMPILE))
            if flight.code or found is None or not isinstance(found.value, Compiled):
                continue
            code = found.value.artifact_sha256
            is_repeated = any(other.code == code for other in self._flights)
            flight.code = code
            if not is_repeated and not found.value.is_refused and self._order.recall("", code) is None:
                flight.is_evaluated_early = True
                self._begin_evaluation(flight, found.value)
