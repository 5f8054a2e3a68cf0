"""Candidates that were compiled where no GPU could time them."""

from dataclasses import dataclass

from tuner.kernel import KernelProgram
from tuner.problem import Problem
from tuner.record import Verdict
from tuner.space import Candidate


@dataclass(frozen=True)
class Origin:
    """Which trial it is, the same in every database that its run was merged into."""

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
