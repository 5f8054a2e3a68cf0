"""The bench of targets whose candidates are compiled and judged in child processes."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuner.core.bench import AbstractBench
    from tuner.tuning.target_kind import BenchChildren, BenchSettings
    from tuner.workers.in_flight import BenchOrder


def child_bench(order: "BenchOrder", how: "BenchSettings", children: "BenchChildren") -> "AbstractBench":
    """Returns a bench whose children are started at once."""
    from tuner.workers.services import compile_spec, judge_spec
    from tuner.workers.timing_lock import TimingLock, words_of
    from tuner.workers.worker_bench import WorkerBench

    turn = TimingLock(children.device, words_of(order.problem), how.tell_of_waiting)
    return WorkerBench(
        order,
        compile_spec(children.compiling),
        judge_spec(children.timing, children.environment),
        how.workers,
        children.limits,
        how.seed,
        turn.held,
    )
