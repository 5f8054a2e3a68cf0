"""Tunes a list of shapes with a fixed budget and compares the best kernel with the baseline, interleaved.

    python -m benchmarks.cpu_matmul --threads 1 --json

A ratio above 1 means that the tuned kernel is faster. The baseline runs with the same threads, in a process
of its own, called from compiled code as the tuner's kernels are, without environment variables that would
slow it down. With --baseline best the baseline is the library that was fastest in the run's final
re-measurement; times of the others are in the rows of the JSON document, which also names the processor, and
the flop/s that it reaches with multiply-adds in registers, measured at the end of each run.
"""

import argparse
import math
import sys
import tempfile
from dataclasses import asdict
from typing import Any

import tuner
from benchmarks.paired_timing import contest, load
from benchmarks.results_file import add_report_options, emit, report
from tuner.core.errors import TunerError
from tuner.core.matmul import Matmul
from tuner.core.problem import ALIGNMENTS, NUMPY_ALIGNMENT, Problem
from tuner.core.problem_text import parse_shape
from tuner.targets.cpu.baseline_libraries import BEST, LIBRARIES, chosen_libraries

SHAPES = (
    *("16x16x16", "48x48x48", "64x64x64", "100x100x100", "128x128x128", "256x256x256", "300x300x300"),
    *("512x512x512", "1024x1024x1024", "2048x2048x2048", "512x1536x384", "768x2304x512"),
    *("333x1777x901", "1000x700x333", "1003x701x331", "128x4096x1024"),
    *("4096x64x4096", "16x4096x4096", "1x4096x4096", "4096x4096x16"),
)


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    rows = []
    for shape in options.shapes:
        problem = Matmul(*parse_shape(shape), dtype=options.dtype, layout=options.layout, align=options.align)
        rows.append(_row(problem, options))
        print(_line(rows[-1]), file=sys.stderr, flush=True)
    summary = _summary(rows)
    print(", ".join(f"{name} {value}" for name, value in summary.items()), file=sys.stderr)
    settings = {name: value for name, value in vars(options).items() if name not in ("json", "output")}
    emit(report("cpu_matmul", settings, rows, summary), options.json, options.output)


def _row(problem: Problem, options: argparse.Namespace) -> dict[str, Any]:
    """Tunes one shape without a warm start; returns the comparison."""
    with tempfile.TemporaryDirectory() as folder:
        run = tuner.tune(
            problem,
            target="cpu",
            threads=options.threads,
            trials=options.trials,
            seed=options.seed,
            baseline=options.baseline,
            db=f"{folder}/bench.db",
        )
    if run.best is None:
        raise SystemExit(f"{problem.key}: no candidate worked")
    busy = load()
    libraries = run.run.baseline.libraries if run.run.baseline else ()
    library = libraries[0].library if libraries else chosen_libraries(options.baseline, problem)[0]
    try:
        compared = contest(problem, run.best.script_text, options.threads, library)
    except TunerError as error:  # a library that multiplies wrongly, or has no such matmul
        return {"shape": problem.shape, "failure": f"{library}: {error}"}
    roofline = run.run.roofline
    return {
        "shape": problem.shape,
        "ratio": compared.ratio,
        "contest": asdict(compared),
        "gflop_per_s": problem.flop / compared.kernel_s / 1e9,
        "baseline_gflop_per_s": problem.flop / compared.baseline_s / 1e9,
        "peak_gflop_per_s": roofline.flop_per_s / 1e9 if roofline else None,
        "peak_source": roofline.flop_source if roofline else None,
        "baseline": run.run.baseline.name if run.run.baseline else None,
        "libraries": [asdict(each) for each in libraries],
        "strategy": run.best.record.candidate.strategy,
        "knobs": dict(run.best.record.candidate.choices),
        "trial": run.best.number,
        "counts": asdict(run.counts),
        "seconds": run.seconds,
        "noise": run.run.noise,
        "load": busy,
    }


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the geometric mean and the least of the ratios, and the number of rows that have none."""
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if not ratios:
        return {"failed": len(rows)}
    geomean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
    return {"geomean": round(geomean, 4), "worst": round(min(ratios), 4), "failed": len(rows) - len(ratios)}


def _line(row: dict[str, Any]) -> str:
    if "failure" in row:
        return f"{row['shape']:15s} {row['failure']}"
    knobs = " ".join(f"{name}={value}" for name, value in row["knobs"].items())
    speeds = f"{row['gflop_per_s']:6.1f} / {row['baseline_gflop_per_s']:6.1f} GFLOP/s"
    search = f"trial {row['trial']:3d}, {row['counts']['failed']} failed, {row['seconds']:.0f} s"
    return f"{row['shape']:15s} {row['ratio']:6.3f}  {speeds}  {search}  {row['strategy']} {knobs}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shapes", nargs="*", default=SHAPES, help="MxNxK ...")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--trials", type=int, default=120)
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--layout", default="nn")
    parser.add_argument("--align", default=NUMPY_ALIGNMENT, choices=ALIGNMENTS, help="of the operands, bytes")
    choices = ("", BEST, *LIBRARIES)
    parser.add_argument("--baseline", default="", choices=choices, help="default: as of tuner tune")
    parser.add_argument("--seed", type=int, default=0)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
