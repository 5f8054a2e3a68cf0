"""The bench of targets whose candidates are compiled and evaluated in child processes."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tuner.core.problem import Problem
from tuner.core.target_name import TargetName
from tuner.tuning.outcome_source import BenchChildren, BenchSettings

if TYPE_CHECKING:
    from tuner.core.bench import AbstractBench
    from tuner.workers.in_flight import BenchOrder

Children = Callable[[TargetName, Problem, int], BenchChildren]  # (target, problem, threads)
Bench = Callable[["BenchOrder", BenchSettings], "AbstractBench"]


def child_bench(children: Children) -> Bench:
    """Returns a function that creates a bench, which compiles and evaluates candidates in child processes.

    ``children`` returns how to start them, for (target, problem, threads). They are started as soon as a
    bench is created.
    """

    def bench(order: "BenchOrder", how: BenchSettings) -> "AbstractBench":
        from tuner.workers.services import compile_spec, evaluation_spec
        from tuner.workers.timing_lock import TimingLock, holder_text
        from tuner.workers.worker_bench import WorkerBench

        made = children(order.target, order.problem, how.threads)
        exclusive = TimingLock(made.device, holder_text(order.problem), how.report_waiting)
        return WorkerBench(
            order,
            compile_spec(made.compiler),
            evaluation_spec(made.evaluator, made.environment),
            how.workers,
            made.limits,
            how.seed,
            exclusive.held,
        )

    return bench
