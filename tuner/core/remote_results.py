"""Results of a remote measurement: candidates of a bundle, measured on a machine with a GPU."""

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
    problem: Problem
    candidate: Candidate
    chip: str
    script_sha256: str
    artifact_sha256: str
    code: str  # CUBIN or PTX
    finished: datetime.datetime  # UTC
    outcome: Measurement | Failure
    verdict: Verdict | None = None  # in addition to a Measurement
    stage_s: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class FinalTime:
    """The time of a top trial of one problem, timed again, interleaved with the other top trials."""

    origin: Origin
    problem: Problem
    measurement: Measurement


@dataclass(frozen=True)
class NoiseFloor:
    """The A/A noise floor of a problem's final re-measurement, in which the fastest trial is timed twice."""

    problem: Problem
    noise: float  # relative difference of the two timings; smaller differences mean nothing


@dataclass(frozen=True)
class BaselineTime:
    """The time of the baseline library for one problem on the measuring machine."""

    problem: Problem
    baseline: Baseline


@dataclass(frozen=True)
class RemoteResults:
    """All results of measuring one bundle: outcomes, final times, noise floors and baselines."""

    provenance: MeasuringProvenance
    trials: tuple[MeasuredTrial, ...]
    final_times: tuple[FinalTime, ...] = ()
    noises: tuple[NoiseFloor, ...] = ()
    baselines: tuple[BaselineTime, ...] = ()
