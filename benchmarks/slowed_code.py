"""Code with additional work in front, calibrated to make a call longer by a given share."""

import hashlib
import itertools
import re
from dataclasses import replace

from tuner.analysis.slowdown import paired_slowdown
from tuner.core.compiled_code import KernelCode
from tuner.core.interfaces import AbstractRunner, Artifact, BoundRecord
from tuner.results.regression.gate import interleaved
from tuner.results.regression.reevaluation import TimingSession, timing_sessions

SESSIONS = 7  # of a calibration
FIRST_SHARE = 0.25  # of a call's time, added for the calibration: well above the noise
SECONDS_PER_ITERATION = 0.3e-9  # about a cycle; only the first guess
WORK = """
  llvm.func @additional_work() attributes {{passthrough = ["noinline"]}} {{
    %count = llvm.mlir.constant({iterations} : i64) : i64
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    llvm.br ^loop(%zero : i64)
  ^loop(%done: i64):
    llvm.inline_asm has_side_effects "nop", "" : () -> ()
    %next = llvm.add %done, %one : i64
    %is_left = llvm.icmp "ult" %next, %count : i64
    llvm.cond_br %is_left, ^loop(%next : i64), ^end
  ^end:
    llvm.return
  }}
"""


def slowed(artifact: Artifact, iterations: int) -> Artifact:
    """Returns CPU code with a loop of ``iterations`` before each partition; 0 adds a comment only."""
    code = artifact.code.text + f"// {iterations} iterations\n"
    if iterations:
        entries = "|".join(re.escape(partition.entry) for partition in artifact.partitions)
        begin = re.compile(rf"^(\s*llvm\.func @(?:{entries})\(.*\{{)$", re.MULTILINE)
        code, count = begin.subn(r"\1\n    llvm.call @additional_work() : () -> ()", code)
        if count != len(artifact.partitions):
            raise ValueError(f"code: found {count} functions, allowed one for each panel")
        code = code.replace("module {", "module {" + WORK.format(iterations=iterations), 1)
    return replace(artifact, code=KernelCode.of_host(code), sha256=hashlib.sha256(code.encode()).hexdigest())


def calibrated(runner: AbstractRunner, base: BoundRecord, share: float) -> int:
    """Returns the iterations that make a call longer by ``share``, as the gate itself measures it here."""
    assert base.artifact is not None
    assert base.record.median_s is not None
    first = round(FIRST_SHARE * base.record.median_s / SECONDS_PER_ITERATION)
    longer = replace(base, artifact=slowed(base.artifact, first))
    taken = tuple(itertools.islice(timing_sessions(runner, (base, base, longer), spare_cores=0), SESSIONS))
    whole = tuple(interleaved(session) for session in taken if isinstance(session, TimingSession))
    if len(whole) < SESSIONS:
        raise SystemExit("the slowed code does not run")
    return round(first * share / paired_slowdown(whole).median)
