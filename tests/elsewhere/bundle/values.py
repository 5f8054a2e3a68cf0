"""Pending trials and results, for tests of bundles."""

import datetime
import hashlib

from tuner.core import remote_results as remote
from tuner.core.candidate import Candidate
from tuner.core.compiled_code import KernelBuffer, KernelCode, Launch, Resources
from tuner.core.errors import Failure, Stage
from tuner.core.machine import Machine
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.records import Measurement, Verdict
from tuner.core.runs import Baseline

PROBLEM = Matmul(16, 8, 8)
NOW = datetime.datetime(2026, 3, 4, 5, 6, 7, 89, datetime.UTC)
RUN = "0b6b4d1e-6c4e-4c1f-9a53-0f6f5b3c9d11"
SCRIPT = "module attributes {transform.with_named_sequence} {}\n"
GPU = Machine("Stub GPU", "Stub GPU, CUDA driver 13.0", "ptx", True, 4, 4, 0, 0, 4096, 2**30, "sm_90")
SESSION = "5d2b1f8a-0000-4000-8000-000000000001"
PROVENANCE = remote.MeasuringProvenance(SESSION, "ab" * 32, "0.1.0", NOW, GPU, "13.0")


def program(
    ptx: str = "//\n.version 8.0", blocks: int = 4, binary: bytes = b"", spills: int = 0, note: str = "a note"
) -> KernelCode:
    """Returns a program of one kernel."""
    launch = Launch("matmul", (blocks, 1, 1), (32, 1, 1), 0, ("a", "b", "c"))
    operands = (("a", 128, "input"), ("b", 64, "input"), ("c", 128, "output"))
    buffers = tuple(KernelBuffer(name, 4 * size, role) for name, size, role in operands)
    resources = Resources("matmul", 32, spills, 0, 0, 0, 0, 0.5, 2, (note,))
    return KernelCode("sm_90", ptx, binary, (launch,), buffers, (resources,))


def pending(
    number: int = 0, problem: Problem = PROBLEM, code: KernelCode | None = None, script: str = SCRIPT
) -> remote.PendingTrial:
    """Returns a pending trial."""
    return remote.PendingTrial(
        origin=remote.Origin(RUN, number),
        id=100 + number,
        target="simulator:sm_90",
        problem=problem,
        candidate=Candidate.of("by_hand", {"number": number, "word": "x"}),
        script_sha256=hashlib.sha256(script.encode()).hexdigest(),
        artifact_sha256=f"{number:064x}",
        verdict=Verdict(0.25, 128, ("4 of 4 blocks",)),
        script_text=script,
        program=program() if code is None else code,
    )


def timed(median_s: float = 1e-3) -> Measurement:
    """Returns a measurement."""
    return Measurement((median_s,) * 6, 3, median_s, (median_s, median_s), cold_median_s=2 * median_s)


def measured(number: int = 0, outcome: Measurement | Failure | None = None) -> remote.MeasuredTrial:
    """Returns the result of the pending trial of that number."""
    return result(pending(number), timed() if outcome is None else outcome)


def result(
    of: remote.PendingTrial, outcome: Measurement | Failure, code: str = remote.TEXT
) -> remote.MeasuredTrial:
    """Returns the result of a pending trial on another machine."""
    return remote.MeasuredTrial(
        origin=of.origin,
        id=of.id,
        problem=of.problem,
        candidate=of.candidate,
        chip=of.program.chip,
        script_sha256=of.script_sha256,
        artifact_sha256=of.artifact_sha256,
        code=code,
        finished=NOW,
        outcome=outcome,
        verdict=Verdict(0.5, 128) if isinstance(outcome, Measurement) else None,
        stage_s=(("load", 0.1), ("verify", 0.2)),
    )


WRONG = Failure(Stage.VERIFY, "3 of 128 elements are wrong")
RESULTS = remote.RemoteResults(
    PROVENANCE,
    (measured(0), measured(1, WRONG)),
    (remote.FinalTime(remote.Origin(RUN, 0), PROBLEM, timed(2e-3)),),
    (remote.NoiseFloor(PROBLEM, 0.01),),
    (remote.BaselineTime(PROBLEM, Baseline("cuBLAS 13.1.0", 0, timed(3e-3), is_interleaved=True)),),
)
