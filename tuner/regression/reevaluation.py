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
    """The problem, target and threads that a candidate is evaluated for."""

    problem: Problem
    target: TargetName
    threads: int
    seed: int = 0  # of the random inputs


def known_code(record: Record) -> Recall:
    """Returns a function that returns the record for equal code, and None for any script.

    The script is never recalled: whether it still compiles to the same code is the question.
    """

    def recall(_script_sha256: str, artifact_sha256: str) -> Record | None:
        is_same = bool(artifact_sha256) and artifact_sha256 == record.artifact_sha256
        return replace(record, reused_from=0) if is_same else None

    return recall


def nothing_known(_script_sha256: str, _artifact_sha256: str) -> None:
    """Returns None: no record is known, so that every candidate is evaluated."""


@contextlib.contextmanager
def bench_of(
    composition: Composition,
    case: EvaluationCase,
    bind: Callable[[Candidate], Script],
    recall: Recall = nothing_known,
) -> "Iterator[AbstractBench]":
    """Context manager: gives a bench with one compile worker. Raises UsageError for too little memory."""
    from tuner.workers.in_flight import BenchOrder

    require_memory(case.problem, composition.machine())
    order = BenchOrder(case.problem, case.target, bind, recall)
    bench = composition.outcomes(case.target).bench(order, BenchSettings(case.threads, 1, case.seed))
    try:
        yield bench
    finally:
        bench.close()


def evaluated(bench: "AbstractBench", candidate: Candidate, effort: Effort = FINAL_EFFORT) -> BoundRecord:
    """Returns a candidate's record, verified and timed, by default as long as in the final re-measurement."""
    bench.start(0, candidate, effort)
    return bench.finish()
