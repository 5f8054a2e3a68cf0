"""Candidates in flight: each is a ticket, which is passed through a bench until its record is complete."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from tuner.core.bench import BoundRecord
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Failure
from tuner.core.problem import Problem
from tuner.core.record import Measurement, Record, Verdict
from tuner.core.target import Artifact, Script
from tuner.core.target_name import TargetName
from tuner.workers.evaluation import Evaluation


@dataclass(frozen=True)
class BenchOrder:
    """What all candidates of a bench share: problem, target, and functions to bind and to reuse outcomes."""

    problem: Problem
    target: TargetName
    bind: Callable[[Candidate], Script]  # raises CandidateError of Stage.BIND
    recall: Callable[[str, str], Record | None]  # (script_sha256, artifact_sha256), one of them "" -> record


class Ticket:
    """The state of one candidate in a bench: its script, its artifact, and its record once complete."""

    def __init__(self, order: BenchOrder, candidate: Candidate) -> None:
        """Binds the candidate; sets ``record`` if binding fails or the script's outcome is known."""
        self._order = order
        self._candidate = candidate
        self._stage_s: tuple[tuple[str, float], ...] = ()
        self.script = Script("", "")
        self.artifact: Artifact | None = None
        self.record: Record | None = None
        self._bind()
        self.recall_script()

    @property
    def finished(self) -> BoundRecord:
        """Returns the candidate's record with script and artifact; to be called once ``record`` is set."""
        assert self.record is not None
        return BoundRecord(self.record, self.script, self.artifact)

    def recall_script(self) -> None:
        """Sets the candidate's ``record`` if the outcome of an equal script is known by now."""
        if self.record is None:
            self._reuse(self._order.recall(self.script.sha256, ""))

    def take_compiled(self, outcome: Artifact | Failure, seconds: float) -> None:
        """Stores the outcome of compiling the candidate's script, which took ``seconds``.

        Completes ``record`` for a failure, for an artifact that must not be launched, and for code whose
        outcome is known; otherwise the artifact is to be evaluated.
        """
        if isinstance(outcome, Failure):
            self._fail(outcome, seconds)
            return
        self.artifact = outcome
        self._stage_s += outcome.stage_s
        if outcome.refusal is not None:
            self.record = self._blank(outcome.refusal)
            return
        self._reuse(self._order.recall("", outcome.sha256))

    def take_evaluation(self, outcome: Evaluation | Failure, seconds: float) -> None:
        """Completes ``record`` with the measurement, the verdict (on a target without times) or the failure.

        ``seconds``: how long a failed evaluation took.
        """
        if isinstance(outcome, Failure):
            self._fail(outcome, seconds)
            return
        self._stage_s += outcome.stage_s
        if outcome.measurement is None:
            self.record = self._blank(outcome.verdict)
            return
        self.record = replace(self._blank(outcome.measurement), verdict=outcome.verdict)

    def _bind(self) -> None:
        start = time.perf_counter()
        try:
            self.script = self._order.bind(self._candidate)
        except CandidateError as error:
            self._fail(error.failure, time.perf_counter() - start)
            return
        self._stage_s += (("bind", time.perf_counter() - start),)

    def _fail(self, failure: Failure, seconds: float) -> None:
        self._stage_s += ((failure.stage.value, seconds),)
        self.record = self._blank(failure)

    def _reuse(self, known: Record | None) -> None:
        if known is None:
            return
        blank = self._blank(known.outcome)
        self.record = replace(
            blank,
            artifact_sha256=blank.artifact_sha256 or known.artifact_sha256,
            reused_from=known.reused_from,
            verdict=known.verdict,
            resources=blank.resources or known.resources,
        )

    def _blank(self, outcome: Measurement | Verdict | Failure) -> Record:
        program = None if self.artifact is None else self.artifact.program
        return Record(
            problem=self._order.problem,
            candidate=self._candidate,
            target=self._order.target,
            outcome=outcome,
            script_sha256=self.script.sha256,
            artifact_sha256="" if self.artifact is None else self.artifact.sha256,
            stage_s=self._stage_s,
            resources=() if program is None else program.resources,
            program=program,
        )
