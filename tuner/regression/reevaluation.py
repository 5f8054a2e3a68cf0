"""Candidates of earlier days judged again by what makes code today."""

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

Recall = Callable[[str, str], Record | None]  # (script_sha256, artifact_sha256), one of them "" -> known


@dataclass(frozen=True)
class EvaluationCase:
    """What a candidate is judged on."""

    problem: Problem
    target: TargetName
    threads: int
    seed: int = 0  # of the random inputs


def known_code(record: Record) -> Recall:
    """Returns what recalls a record for its code, and for no script: that is what is in question."""

    def recall(_script_sha256: str, artifact_sha256: str) -> Record | None:
        is_same = bool(artifact_sha256) and artifact_sha256 == record.artifact_sha256
        return replace(record, reused_from=0) if is_same else None

    return recall


def nothing_known(_script_sha256: str, _artifact_sha256: str) -> None:
    """Recalls nothing, so that all is judged."""


@contextlib.contextmanager
def bench_of(
    composition: Composition,
    case: EvaluationCase,
    bind: Callable[[Candidate], Script],
    recall: Recall = nothing_known,
) -> "Iterator[AbstractBench]":
    """Gives a bench, with one compile worker. Raises UsageError where the arrays do not fit."""
    from tuner.workers.in_flight import BenchOrder

    require_memory(case.problem, composition.machine())
    order = BenchOrder(case.problem, case.target, bind, recall)
    bench = composition.outcomes(case.target).bench(order, BenchSettings(case.threads, 1, case.seed))
    try:
        yield bench
    finally:
        bench.close()


def evaluated(bench: "AbstractBench", candidate: Candidate, effort: Effort = FINAL_EFFORT) -> BoundRecord:
    """Returns what becomes of a candidate, verified and timed with the effort of a finalist."""
    bench.start(0, candidate, effort)
    return bench.finish()
