"""The bench of targets whose candidates are compiled and judged in child processes."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuner.core.bench import AbstractBench
    from tuner.tuning.target_kind import BenchSettings
    from tuner.workers.in_flight import BenchOrder
    from tuner.workers.limits import Limits
    from tuner.workers.protocol import Factory
    from tuner.workers.services import Environment


def child_bench(
    order: "BenchOrder",
    how: "BenchSettings",
    *,
    compiling: "Factory",  # of the target in a child that compiles
    timing: "Factory",  # of the target, or its judge, in the child that owns the machine
    limits: "Limits",
    environment: "Environment",  # of the child that judges
    device: str = "cpu",  # that is timed, by one tuner at a time
) -> "AbstractBench":
    """Returns a bench whose children are started at once."""
    from tuner.workers.services import compile_spec, judge_spec
    from tuner.workers.timing_lock import TimingLock, words_of
    from tuner.workers.worker_bench import WorkerBench

    return WorkerBench(
        order,
        compile_spec(compiling),
        judge_spec(timing, environment),
        how.workers,
        limits,
        how.seed,
        TimingLock(device, words_of(order.problem), how.tell_of_waiting),
    )
