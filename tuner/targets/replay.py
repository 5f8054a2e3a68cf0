"""Replays the outcomes of a recorded search space: nothing is compiled, run or timed."""

from dataclasses import replace
from typing import final

import numpy as np

from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.machine import Compiler, Machine
from tuner.core.problem import Problem
from tuner.core.record import Measurement, Verdict
from tuner.core.target import AbstractCompiler, AbstractEvaluator, Artifact, Effort, Script
from tuner.runtime.timing import summarize
from tuner.space.recorded.space import RecordedSpace, RecordedTime

ROW = "// row "  # begins the script of a configuration, followed by its number in the recording
MARK = "replay of "  # begins the name of a machine whose times are recorded
BEFORE_LOADING = (Stage.BIND, Stage.COMPILE, Stage.RESOURCES)
UNVERIFIED = Verdict(0.0, 0, ("the recording does not say how right the result was",))


def recorded_machine(space: RecordedSpace) -> Machine:
    """Returns the machine that a recording was made on, renamed "replay of ...".

    So it equals no real machine, and recorded times are not taken for times of this machine.
    """
    return replace(space.machine, name=f"{MARK}{space.machine.name}")


def recorded_compiler(space: RecordedSpace) -> Compiler:
    """Returns the compiler build that a recording was made with, plus the recording's hash.

    The hash is added to the packages: recordings share no stored results.
    """
    recording = (("recording", space.sha256[:12]),)
    return replace(space.compiler, packages=(*space.compiler.packages, *recording))


def bind_recorded(space: RecordedSpace, candidate: Candidate) -> Script:
    """Returns a script that names the number of a candidate in a recording, instead of a transform script.

    Raises CandidateError(BIND) for a candidate that is not in the recording or failed to bind when recorded.
    """
    row = space.feasible.row_of(candidate)
    if row is None:
        raise CandidateError(Stage.BIND, f"{candidate.text} is not in recording {space.name}")
    _raise_recorded(space, (Stage.BIND,), row)
    return Script.of(f"{ROW}{row} of recording {space.name}: {candidate.text}\n")


@final
class ReplayCompiler(AbstractCompiler):
    """A compiler for a recorded search space: compiles nothing, raises the failures that were recorded."""

    def __init__(self, space: RecordedSpace) -> None:
        self._space = space

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Returns an artifact with the number of the script's candidate in the recording.

        ``script`` is one of ``bind_recorded``. Artifacts have equal hashes where the recorded code was equal.
        Raises a CandidateError that was recorded at stage BIND, COMPILE or RESOURCES.
        """
        row = int(script.text.removeprefix(ROW).split()[0])
        _raise_recorded(self._space, BEFORE_LOADING, row)
        code = f"{self._space.sha256} {self._space.codes[row]}"  # equal where the recorded code was equal
        return Artifact(str(row), Script.of(code).sha256)


@final
class ReplayEvaluator(AbstractEvaluator):
    """An evaluator for a recorded search space: runs nothing, returns or raises what was recorded."""

    def __init__(self, space: RecordedSpace) -> None:
        self._space = space

    def load(self, problem: Problem, artifact: Artifact) -> object:
        """Returns the number of the artifact's candidate in the recording, an int.

        Raises a CandidateError that was recorded at stage LOAD.
        """
        row = int(artifact.host_code)
        _raise_recorded(self._space, (Stage.LOAD,), row)
        return row

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        """Returns the recorded verdict of a candidate; without one, a verdict of 0 elements with a note.

        ``loaded`` is a result of ``load``. Raises a CandidateError that was recorded at stage RUN or VERIFY.
        """
        row = _row(loaded)
        _raise_recorded(self._space, (Stage.RUN, Stage.VERIFY), row)
        outcome = self._space.outcomes[row]
        return (isinstance(outcome, RecordedTime) and outcome.verdict) or UNVERIFIED

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        """Returns the recorded measurement of a candidate; ``effort`` and ``rng`` have no influence.

        ``loaded`` is a result of ``load``. Where only a time or samples were recorded, makes a measurement of
        them. Raises a CandidateError that was recorded at stage MEASURE.
        """
        row = _row(loaded)
        _raise_recorded(self._space, (Stage.MEASURE,), row)
        outcome = self._space.outcomes[row]
        assert isinstance(outcome, RecordedTime)  # every failure has been raised before
        return _measurement(outcome, row)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        """Returns the recorded measurement of each candidate in ``loaded``, in the same order.

        Raises a CandidateError that was recorded at stage MEASURE.
        """
        return tuple(self.measure(problem, row, effort, rng) for row in loaded)


def _raise_recorded(space: RecordedSpace, stages: tuple[Stage, ...], row: int) -> None:
    outcome = space.outcomes[row]
    if isinstance(outcome, Failure) and outcome.stage in stages:
        raise CandidateError(outcome.stage, outcome.reason)


def _row(loaded: object) -> int:
    assert isinstance(loaded, int)
    return loaded


def _measurement(recorded: RecordedTime, row: int) -> Measurement:
    """Returns a recorded measurement; a missing interval is bootstrapped, with ``row`` as random seed."""
    if recorded.measurement is not None:
        return recorded.measurement
    samples = list(recorded.samples_s or (recorded.time_s,))
    return summarize(samples, 1, np.random.default_rng(row))
