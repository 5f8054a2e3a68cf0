"""Candidates that were compiled where no GPU could time them."""

from dataclasses import dataclass

from tuner.core.candidate import Candidate
from tuner.core.kernel_program import KernelProgram
from tuner.core.problem import Problem
from tuner.core.record import Verdict


@dataclass(frozen=True)
class Origin:
    """A trial's name that is the same in every database that its run was merged into."""

    run: str  # uuid
    number: int  # of the trial, within the run


@dataclass(frozen=True)
class PendingTrial:
    """A compiled trial without a time, with all that is needed to run it elsewhere."""

    origin: Origin
    id: int  # of the trial where it was exported, for people
    target: str  # that compiled it: "simulator:sm_90", "cuda:sm_90"
    problem: Problem
    candidate: Candidate
    script_sha256: str
    artifact_sha256: str
    verdict: Verdict | None  # of the simulator; None: only compiled
    script_text: str
    program: KernelProgram
    predicted_cycles: float | None = None  # of a model: says what is timed first, and nothing else
