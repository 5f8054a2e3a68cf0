"""How long a GPU candidate takes from knobs to cubin, on one core and on two, and to simulate.

    python -m benchmarks.gpu_compile --json
    python -m benchmarks.gpu_compile --chip sm_90a --json      # points of wgmma

Stages: bind (template to script), transform (script on payload), lower (to PTX), assemble (ptxas). Throughput
is that of whole worker processes, which compile the points in turn. The simulated block is 128 x 128, k = 64.
"""

import argparse
import multiprocessing
import os
import resource
import statistics
import sys
import time
from typing import Any

import numpy as np

from benchmarks.results_file import add_report_options, emit, report
from tests.support.gpu_points import TENSOR_CORES, Builder, Built, Point, point, points_of
from tuner.core.matmul import Matmul
from tuner.gpu.ptxsim.target.evaluator import simulate_program

WORKERS = (1, 2)
BLOCK = Matmul(128, 128, 64, "f16")


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))} if options.pin else os.sched_getaffinity(0))
    builder = Builder(options.chip)
    rows = [_row(each, builder, options.repeats) for each in points_of(options.chip)]
    summary: dict[str, Any] = {
        "median_compile_s": statistics.median(row["compile_s"] for row in rows),
        "median_processor_s": statistics.median(row["processor_s"] for row in rows),
        "slowest_compile_s": max(row["compile_s"] for row in rows),
        "simulated_block_s": _simulated_s(builder, options.repeats),
    }
    if not options.pin:
        for workers in WORKERS:
            summary[f"compiles_per_s_{workers}"] = _throughput(options.chip, workers, options.repeats)
    for row in rows:
        print(f"{row['compile_s']:.3f} s {row['point']}", file=sys.stderr)
    for name, value in summary.items():
        print(f"{name:24s} {value:.4g}", file=sys.stderr)
    settings = {"chip": options.chip, "repeats": options.repeats, "pin": options.pin}
    emit(report("gpu_compile", settings, rows, summary), options.json, options.output)


def _row(wanted: Point, builder: Builder, repeats: int) -> dict[str, Any]:
    builder.build(wanted)  # the first of a kind also loads dialects and compiles the template
    start_s = _processor_s()
    built = [builder.build(wanted) for _ in range(repeats)]
    processor_s = (_processor_s() - start_s) / repeats
    stages = {stage: _median_s(built, stage) for stage, _ in built[0].stage_s}
    median_s = statistics.median(each.compile_s for each in built)
    return {"point": wanted.text, "compile_s": median_s, "processor_s": processor_s, "stages": stages}


def _processor_s() -> float:
    """Returns the processor seconds of this process and of every ptxas process that it has run."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in spent)


def _median_s(built: list[Built], stage: str) -> float:
    return statistics.median(dict(each.stage_s)[stage] for each in built)


def _simulated_s(builder: Builder, repeats: int) -> float:
    program = builder.build(point(TENSOR_CORES, BLOCK, depth=2)).program
    buffers = {buffer.name: np.zeros(buffer.bytes, np.uint8) for buffer in program.buffers}
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        simulate_program(program, buffers)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _throughput(chip: str, workers: int, repeats: int) -> float:
    """Returns compiled points per second with ``workers`` processes, without the start of the processes."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(workers + 1)
    jobs = [context.Process(target=_work, args=(chip, repeats, barrier)) for _ in range(workers)]
    for job in jobs:
        job.start()
    barrier.wait()
    start = time.perf_counter()
    barrier.wait()
    seconds = time.perf_counter() - start
    for job in jobs:
        job.join()
    return workers * repeats * len(points_of(chip)) / seconds


def _work(chip: str, repeats: int, barrier: Any) -> None:
    try:
        builder = Builder(chip)
        builder.build(points_of(chip)[0])
        barrier.wait()
        for _ in range(repeats):
            for wanted in points_of(chip):
                builder.build(wanted)
        barrier.wait()
    except BaseException:
        barrier.abort()  # or the others would wait for this one
        raise


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chip", default="sm_90")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--pin", action="store_true", help="keep everything on one core, no throughput")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
