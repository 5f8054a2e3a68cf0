"""The bench of targets whose candidates are compiled and evaluated in child processes."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tuner.core.problem import Problem
from tuner.core.target_name import TargetName
from tuner.tuning.outcome_source import BenchChildren, Benches, BenchSettings

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
    several = child_benches(children)
    return lambda order, how: several((order,), (how,))[0]


def child_benches(children: Children) -> Benches:
    """Returns a function that creates a bench for each of several problems, on the same child processes.

    ``children`` returns how to start them; those of the first problem are started, with the memory that the
    largest problem may take. All problems have one target, and one number of threads and workers.
    """

    def benches(
        orders: "tuple[BenchOrder, ...]", how: "tuple[BenchSettings, ...]"
    ) -> "tuple[AbstractBench, ...]":
        from tuner.workers.services import compile_spec, evaluation_spec
        from tuner.workers.timing_lock import TimingLock, holder_text
        from tuner.workers.worker_bench import BenchProcesses, WorkerBench

        made = [
            children(order.target, order.problem, each.threads)
            for order, each in zip(orders, how, strict=True)
        ]
        memory_bytes = max(each.limits.memory_bytes for each in made)
        exclusive = TimingLock(made[0].device, holder_text(orders[0].problem), how[0].report_waiting)
        processes = BenchProcesses(
            compile_spec(made[0].compiler),
            evaluation_spec(made[0].evaluator, made[0].environment),
            how[0].workers,
            replace(made[0].limits, memory_bytes=memory_bytes),
            exclusive.held,
        )
        return tuple(
            WorkerBench(order, processes, each.seed) for order, each in zip(orders, how, strict=True)
        )

    return benches
