"""Where the time of a run goes: seconds per trial by stage, trials per second, and the tuner's own share.

    python -m benchmarks.overhead --shape 1024x1024x1024 --json

The tuner's own share is the processor time of its parent process (sampling, binding, database, progress) over
the wall time of the run: everything else is compiling, checking and timing in child processes.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from typing import Any

import tuner
from benchmarks.results_file import add_report_options, emit, report
from tuner.core.matmul import Matmul
from tuner.core.problem_text import parse_shape
from tuner.core.records import Record
from tuner.tuning.events import TrialDone


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    problem = Matmul(*parse_shape(options.shape), dtype=options.dtype)
    done: list[tuple[float, Record]] = []

    def observe(event: object) -> None:
        if isinstance(event, TrialDone):
            done.append((time.perf_counter(), event.record))

    start, start_cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        tuner.tune(
            problem,
            "cpu",
            options.trials,
            workers=options.workers,
            seed=options.seed,
            db=f"{folder}/bench.db",
            observe=observe,
        )
    wall_s, own_s = time.perf_counter() - start, time.process_time() - start_cpu
    search_s = done[-1][0] - done[0][0]
    summary = {
        "wall_s": wall_s,
        "own_share": own_s / wall_s,
        "trials_per_s": options.trials / wall_s,
        "trials_per_s_while_searching": (len(done) - 1) / search_s,
        "timing_share_while_searching": _stage_s(done, "measure") / search_s,
        "median_compile_s": statistics.median(_compile_s(record) for _, record in done),
        "failed": sum(record.status == "failed" for _, record in done),
    }
    rows = _stages([record for _, record in done])
    for name, value in summary.items():
        print(f"{name:32s} {value:.4g}", file=sys.stderr)
    for row in rows:
        print(
            f"{row['stage']:32s} median {row['median_s'] * 1e3:.1f} ms, sum {row['sum_s']:.2f} s",
            file=sys.stderr,
        )
    settings = {name: value for name, value in vars(options).items() if name not in ("json", "output")}
    emit(report("overhead", settings, rows, summary), options.json, options.output)


def _stages(records: list[Record]) -> list[dict[str, Any]]:
    seconds: dict[str, list[float]] = defaultdict(list)
    for record in records:
        for stage, stage_s in record.stage_s:
            seconds[stage].append(stage_s)
    return [
        {"stage": stage, "median_s": statistics.median(spent), "sum_s": sum(spent), "trials": len(spent)}
        for stage, spent in seconds.items()
    ]


def _stage_s(done: list[tuple[float, Record]], name: str) -> float:
    return sum(stage_s for _, record in done for stage, stage_s in record.stage_s if stage == name)


def _compile_s(record: Record) -> float:
    """Returns the seconds of transform, lowering and JIT of one candidate."""
    return sum(stage_s for stage, stage_s in record.stage_s if stage in ("transform", "lower", "load"))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", default="1024x1024x1024", help="MxNxK")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
