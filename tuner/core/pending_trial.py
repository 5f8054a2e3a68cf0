"""Candidates that were compiled on a machine without a GPU and still have to be timed."""

from dataclasses import dataclass

from tuner.core.candidate import Candidate
from tuner.core.kernel_program import KernelProgram
from tuner.core.problem import Problem
from tuner.core.record import Verdict


@dataclass(frozen=True)
class Origin:
    """Identifies a trial in every database that its run was merged into: run UUID and trial number."""

    run: str  # uuid
    number: int  # of the trial, within the run


@dataclass(frozen=True)
class PendingTrial:
    """A compiled GPU trial that still has to be timed, with all that another machine needs to run it."""

    origin: Origin
    id: int  # of the trial in the exporting database, to print
    target: str  # that compiled the trial: "simulator:sm_90", "cuda:sm_90"
    problem: Problem
    candidate: Candidate
    script_sha256: str
    artifact_sha256: str
    verdict: Verdict | None  # of the simulator; None: only compiled
    script_text: str
    program: KernelProgram
    predicted_cycles: float | None = None  # of a cost model: only decides which trial is timed first
