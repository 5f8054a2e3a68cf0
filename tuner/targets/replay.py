"""The replay target: answers from a recorded space, without compiling, running or timing."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.machine import Compiler, Machine
from tuner.core.problem import Problem
from tuner.core.record import Measurement, Verdict
from tuner.core.target import AbstractTarget, Artifact, Effort, Script
from tuner.recorded.space import RecordedSpace, RecordedTime
from tuner.runtime.timing import summarize

ROW = "// row "  # begins the script of a point, followed by its row in the recording
MARK = "replay of "  # begins the name of a machine whose times are recorded ones
BEFORE_LOADING = (Stage.BIND, Stage.COMPILE, Stage.RESOURCES)
UNVERIFIED = Verdict(0.0, 0, ("the recording does not say how right the result was",))


def recorded_target(file: str) -> "ReplayTarget":
    """Returns the target of a recording, for a process of its own."""
    from tuner.recorded.reading import read_recorded

    return ReplayTarget(read_recorded(Path(file)))


class ReplayTarget(AbstractTarget):
    """Looks each point up; its recorded failure is raised at its recorded stage."""

    name = "replay"

    def __init__(self, space: RecordedSpace) -> None:
        self._space = space

    def machine(self) -> Machine:
        """Returns the recorded machine, under a name that no real machine has."""
        machine = self._space.machine
        return replace(machine, name=f"{MARK}{machine.name}")

    def compiler(self) -> Compiler:
        """Returns the recorded compiler, with the recording itself among its packages."""
        recording = (("recording", self._space.sha256[:12]),)
        return replace(self._space.compiler, packages=(*self._space.compiler.packages, *recording))

    def bind(self, candidate: Candidate) -> Script:
        """Returns the row of a point as its script. Raises the recorded CandidateError."""
        row = self._space.feasible.row_of(candidate)
        if row is None:
            raise CandidateError(Stage.BIND, f"{candidate.text} is not in recording {self._space.name}")
        self._raise_at((Stage.BIND,), row)
        return Script.of(f"{ROW}{row} of recording {self._space.name}: {candidate.text}\n")

    def compile(self, problem: Problem, script: Script) -> Artifact:
        row = int(script.text.removeprefix(ROW).split()[0])
        self._raise_at(BEFORE_LOADING, row)
        code = f"{self._space.sha256} {self._space.codes[row]}"  # equal where the recorded code was
        return Artifact(str(row), Script.of(code).sha256, panels=())

    def load(self, problem: Problem, artifact: Artifact) -> object:
        row = int(artifact.code)
        self._raise_at((Stage.LOAD,), row)
        return row

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        row = _row(loaded)
        self._raise_at((Stage.RUN, Stage.VERIFY), row)
        outcome = self._space.outcomes[row]
        return (isinstance(outcome, RecordedTime) and outcome.verdict) or UNVERIFIED

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        """Returns the recorded measurement, whatever the effort."""
        row = _row(loaded)
        self._raise_at((Stage.MEASURE,), row)
        outcome = self._space.outcomes[row]
        assert isinstance(outcome, RecordedTime)  # every failure was raised by now
        return _measurement(outcome, row)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        return tuple(self.measure(problem, row, effort, rng) for row in loaded)

    def _raise_at(self, stages: tuple[Stage, ...], row: int) -> None:
        outcome = self._space.outcomes[row]
        if isinstance(outcome, Failure) and outcome.stage in stages:
            raise CandidateError(outcome.stage, outcome.reason)


def _row(loaded: object) -> int:
    assert isinstance(loaded, int)
    return loaded


def _measurement(recorded: RecordedTime, row: int) -> Measurement:
    """Returns a recorded measurement; a missing interval is bootstrapped, with the row as the random seed."""
    if recorded.measurement is not None:
        return recorded.measurement
    samples = list(recorded.samples_s or (recorded.time_s,))
    return summarize(samples, 1, np.random.default_rng(row))
