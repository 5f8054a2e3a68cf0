"""Candidates of earlier runs, evaluated again with today's compiler."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.core.bench import BoundRecord
from tuner.core.candidate import Candidate
from tuner.core.problem import Problem
from tuner.core.record import Record
from tuner.core.target import Effort, Script
from tuner.core.target_name import TargetName
from tuner.tuning.composition import Composition
from tuner.tuning.memory_check import require_memory
from tuner.tuning.outcome_source import BenchSettings
from tuner.tuning.remeasurement import FINAL_EFFORT

if TYPE_CHECKING:
    from tuner.core.bench import AbstractBench

Recall = Callable[[str, str], Record | None]  # (script_sha256, artifact_sha256), one "" -> known record


@dataclass(frozen=True)
class EvaluationCase:
    """The problem, target, threads, random seed and baseline with which a candidate is evaluated."""

    problem: Problem
    target: TargetName
    threads: int
    seed: int = 0  # of the random inputs
    baseline: str = ""  # choice of the library that is timed with it; "": the default of the target


def known_code(record: Record) -> Recall:
    """Returns a recall function (script_sha256, artifact_sha256) that knows only the code of ``record``.

    For an equal ``artifact_sha256`` it returns the record, marked as reused, else None. A script is never
    known: whether it still compiles to the same code is the question.
    """

    def recall(_script_sha256: str, artifact_sha256: str) -> Record | None:
        is_same = bool(artifact_sha256) and artifact_sha256 == record.artifact_sha256
        return replace(record, reused_from=0) if is_same else None

    return recall


def nothing_known(_script_sha256: str, _artifact_sha256: str) -> None:
    """Returns None for any hashes: the recall function with which every candidate is evaluated."""


@contextlib.contextmanager
def bench_of(
    composition: Composition,
    case: EvaluationCase,
    bind: Callable[[Candidate], Script],
    recall: Recall = nothing_known,
) -> "Iterator[AbstractBench]":
    """Context manager: yields a bench, which compiles, verifies and times candidates, and closes it.

    The bench has one compile worker. Raises UsageError where the machine has too little memory for the
    problem.

    Args:
        composition: provides the target kinds and the machine.
        case: problem, target, threads, seed and baseline.
        bind: returns the script of a candidate.
        recall: returns the record that is known for a script or code, which is then not evaluated.
    """
    from tuner.workers.in_flight import BenchOrder

    require_memory(case.problem, composition.machine())
    order = BenchOrder(case.problem, case.target, bind, recall)
    outcomes = composition.kind(case.target).outcomes_with(case.baseline)
    bench = outcomes.bench(order, BenchSettings(case.threads, 1, case.seed))
    try:
        yield bench
    finally:
        bench.close()


def evaluated(bench: "AbstractBench", candidate: Candidate, effort: Effort = FINAL_EFFORT) -> BoundRecord:
    """Compiles, verifies and times a candidate on a bench; returns its record, script and code.

    ``effort`` is the length of the time measurement. A failure of the candidate is an outcome, not an
    exception.
    """
    bench.start(0, candidate, effort)
    return bench.finish()
