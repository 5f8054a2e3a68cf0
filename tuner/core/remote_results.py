"""What a machine with a GPU found out about candidates that came in a bundle."""

import datetime
from dataclasses import dataclass

from tuner.core.candidate import Candidate
from tuner.core.errors import Failure
from tuner.core.machine import Machine
from tuner.core.pending_trial import Origin
from tuner.core.problem import Problem
from tuner.core.record import Measurement, Verdict
from tuner.core.runs import Baseline

CUBIN, PTX = "cubin", "ptx"  # what ran: the machine code, or PTX that the driver compiled for want of it


@dataclass(frozen=True)
class MeasuringProvenance:
    """Where and when results were made, and of what."""

    session: str  # uuid of the measuring
    bundle: str  # sha256 of the bundle's manifest
    tuner: str  # version
    started: datetime.datetime  # UTC
    machine: Machine
    driver: str  # the newest CUDA that it knows


@dataclass(frozen=True)
class MeasuredTrial:
    """What became of one candidate on that machine."""

    origin: Origin
    id: int  # of the trial where the bundle was exported, for people
    problem: Problem
    candidate: Candidate
    chip: str
    script_sha256: str
    artifact_sha256: str
    code: str  # CUBIN or PTX
    finished: datetime.datetime  # UTC
    outcome: Measurement | Failure
    verdict: Verdict | None = None  # beside a Measurement
    stage_s: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class FinalTime:
    """A finalist of one problem timed again, interleaved with the others."""

    origin: Origin
    problem: Problem
    measurement: Measurement


@dataclass(frozen=True)
class NoiseFloor:
    """What two timings of the fastest differed by, among the finalists of a problem."""

    problem: Problem
    noise: float  # relative difference that means nothing


@dataclass(frozen=True)
class BaselineTime:
    """The baseline on one problem, there."""

    problem: Problem
    baseline: Baseline


@dataclass(frozen=True)
class RemoteResults:
    """All that one measuring wrote down."""

    provenance: MeasuringProvenance
    trials: tuple[MeasuredTrial, ...]
    finals: tuple[FinalTime, ...] = ()
    noises: tuple[NoiseFloor, ...] = ()
    baselines: tuple[BaselineTime, ...] = ()
