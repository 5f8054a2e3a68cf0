"""Remote measurement as values: trials that wait for a GPU, and the results of measuring them."""

import datetime
from dataclasses import dataclass, field

from tuner.core.candidate import Candidate
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import Failure
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.problem_documents import PROBLEM
from tuner.core.records import Measurement, Verdict
from tuner.core.runs import Baseline

# what ran: the binary of a KernelCode, or its text that the driver compiled in its place
BINARY = "binary"
TEXT = "text"


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
    problem: Problem = field(metadata=PROBLEM)
    candidate: Candidate
    script_sha256: str
    artifact_sha256: str
    verdict: Verdict | None  # of the simulator; None: only compiled
    script_text: str
    program: KernelCode
    predicted_cycles: float | None = None  # of a cost model: only decides which trial is timed first


@dataclass(frozen=True)
class MeasuringProvenance:
    """Where and when a bundle was measured: session, bundle, version of tuner, machine and driver."""

    session: str  # uuid of the measuring session
    bundle: str  # sha256 of the bundle's manifest
    tuner: str  # version
    started: datetime.datetime  # UTC
    machine: Machine
    driver: str  # the newest CUDA version that the driver supports


@dataclass(frozen=True)
class MeasuredTrial:
    """A candidate of a bundle with its outcome (time or failure) on the measuring machine."""

    origin: Origin
    id: int  # of the trial in the database that exported the bundle, to print
    problem: Problem = field(metadata=PROBLEM)
    candidate: Candidate
    chip: str
    script_sha256: str
    artifact_sha256: str
    code: str  # BINARY or TEXT
    finished: datetime.datetime  # UTC
    outcome: Measurement | Failure
    verdict: Verdict | None = None  # in addition to a Measurement
    stage_s: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class FinalTime:
    """The time of a top trial of one problem, timed again with the other top trials, or why it failed."""

    origin: Origin
    problem: Problem = field(metadata=PROBLEM)
    measurement: Measurement | Failure  # a failure: it had a first time, and failed when timed again


@dataclass(frozen=True)
class NoiseFloor:
    """The A/A noise floor of a problem's final re-measurement, in which the fastest trial is timed twice."""

    problem: Problem = field(metadata=PROBLEM)
    # relative difference of the two timings, never less than half the width of an interval:
    # smaller differences mean nothing
    noise: float


@dataclass(frozen=True)
class BaselineTime:
    """The time of the baseline library for one problem on the measuring machine."""

    problem: Problem = field(metadata=PROBLEM)
    baseline: Baseline


@dataclass(frozen=True)
class RemoteResults:
    """All results of measuring one bundle: outcomes, final times, noise floors and baselines."""

    provenance: MeasuringProvenance
    trials: tuple[MeasuredTrial, ...]
    final_times: tuple[FinalTime, ...] = ()
    noises: tuple[NoiseFloor, ...] = ()
    baselines: tuple[BaselineTime, ...] = ()
