"""Times quantized matmuls by tuner and by other libraries, interleaved in one process, and their errors.

    python -m benchmarks.quantized --formats w4a8 --rows 1 4 16 --db tuned.db --output results.json
    python -m benchmarks.quantized --tune-only --formats w4a8 --db tuned.db     # without the libraries

A ratio above 1 means that tuner is faster than the best of the libraries that are installed and have the
format. Weights are Gaussian with outliers, as those of models are, so that errors against the unquantized
product say something. Up to 16 rows of A the weights come from memory: copies of them, three times the L3
cache together, are multiplied in turn. A kernel is taken from --db, and tuned now where that has none. What
--output has already is kept.
"""

import argparse
import json
import statistics
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import tuner
from benchmarks.quantized_times import OURS, measured
from benchmarks.results_file import add_report_options, emit, report
from tuner.core.errors import TunerError
from tuner.core.matmul import Matmul
from tuner.core.problem import WARM, WEIGHTS_COLD, Problem
from tuner.results.best_trials import best_here
from tuner.results.database import open_known
from tuner.runtime.workers.worker import call_in_child
from tuner.targets import registry
from tuner.targets.cpu.baseline_libraries import baseline_environment

SHAPES = ("4096x4096", "11008x4096", "4096x11008", "1000x4128", "4104x2976")  # N x K; two are ragged
ROWS = (1, 2, 4, 8, 16, 128, 512)
FEW_ROWS = 16
CHILD_S, CHILD_BYTES = 300.0, 12 << 30


@dataclass(frozen=True)
class QuantizedForm:
    """A type of A, and how weights and activations are quantized."""

    dtype: str
    weights: str
    activations: str

    def problem(self, m: int, shape: str, group: int) -> Problem:
        """Returns the problem with ``group`` (0: channel); raises UsageError where that does not fit."""
        n, k = map(int, shape.split("x"))
        activations = "i8-row" if self.activations and not group else self.activations
        cache = WEIGHTS_COLD if m <= FEW_ROWS else WARM
        size = group or "channel"
        return Matmul(
            *(m, n, k),
            dtype=self.dtype,
            layout="nt",
            cache=cache,
            weights=self.weights,
            group_size=size,
            activations=activations,
        )


FORMS = {
    "w4a8": QuantizedForm("f32", "i4", "i8-group"),
    "w4a8-row": QuantizedForm("f32", "i4", "i8-row"),  # activations as zentorch has these
    "w4a16": QuantizedForm("bf16", "i4", ""),
    "w4a16-f32": QuantizedForm("f32", "i4", ""),
    "w8a8": QuantizedForm("f32", "i8", "i8-group"),
    "w8a8-row": QuantizedForm("f32", "i8", "i8-row"),
}
# (formats, most rows, the least ratio for each shape, the one aimed at); docs/decisions/quantized-matmuls.md
GOALS = (
    (("w4a8", "w4a8-row"), 1, 1.1, 1.3),
    (("w4a8", "w4a8-row"), 4, 1.4, 1.7),
    (("w4a8", "w4a8-row"), FEW_ROWS, 1.35, 1.6),
    (("w4a8",), 512, 1.1, 1.2),
    (("w4a8-row",), 512, 1.1, 1.35),
    (("w4a16",), FEW_ROWS, 1.5, 2.0),
    (("w4a16",), 512, 1.1, 1.15),
    (("w4a16-f32",), FEW_ROWS, 1.5, 2.0),
    (("w4a16-f32",), 512, 1.0, 1.05),
    (("w8a8", "w8a8-row"), 512, 0.95, 1.0),
)


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    rows = _stored(options.output)
    done = {(row["format"], row["problem"]) for row in rows}
    for name, problem in _problems(options):
        if (name, problem.key) in done:
            continue
        script = _tuned_script(problem, options)
        if options.tune_only:
            continue
        work = partial(measured, problem, script, options.threads, options.seconds, options.seed)
        environment = baseline_environment("", options.threads)
        # in a process of its own: zentorch takes new weights at an old address for those it has packed
        try:
            found = call_in_child("quantized", work, CHILD_S, CHILD_BYTES, environment)
        except TunerError as error:
            found = {"failure": str(error)}
        goal = _goal(name, problem.sizes[0])
        rows.append({"format": name, "problem": problem.key, "goal": goal, **found})
        print(_line(rows[-1]), file=sys.stderr, flush=True)
        _write(rows, options)
    if not options.tune_only:
        document = _write(rows, options)
        print(*document["summary"]["groups"], sep="\n", file=sys.stderr)
        if options.json:
            emit(document, True, None)


def _problems(options: argparse.Namespace) -> list[tuple[str, Problem]]:
    """Returns the problems to time, with the names of their formats; those that do not exist are left out."""
    found = []
    for name in options.formats:
        for shape in options.shapes:
            for group in options.groups:
                if group and int(shape.partition("x")[2]) % group:
                    continue
                found += [(name, FORMS[name].problem(m, shape, group)) for m in options.rows]
    return found


def _tuned_script(problem: Problem, options: argparse.Namespace) -> str:
    """Returns the script of the best trial in the database, else of a run of a few trials."""
    try:
        with open_known(options.db) as store:
            backends = registry.real_backends()
            return best_here(store, backends, problem, "cpu", options.threads).best.script_text
    except TunerError:  # nothing is stored
        run = tuner.tune(problem, "cpu", options.trials, threads=options.threads, db=options.db)
    if run.best is None:
        raise SystemExit(f"{problem.key}: no candidate worked")
    print(f"{problem.key}: {run.best!r}", file=sys.stderr, flush=True)
    return run.best.script_text


def _goal(name: str, m: int) -> dict[str, float]:
    floor, aim = next((floor, aim) for names, most, floor, aim in GOALS if name in names and m <= most)
    return {"floor": floor, "aim": aim}


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns a line for each format, group and number of rows: geometric mean, worst, and the goal."""
    ratios: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row.get("ratio"):
            _, shape, weights, *_ = row["problem"].split()
            ratios.setdefault(f"{row['format']} {weights} M={shape.partition('x')[0]}", []).append(row)
    lines, missed = [], []
    for name, found in ratios.items():
        medians = [row["ratio"]["median"] for row in found]
        floor, aim = found[0]["goal"]["floor"], found[0]["goal"]["aim"]
        share = statistics.median(row["share_of_read"] for row in found)
        line = f"{name}: geometric mean {statistics.geometric_mean(medians):.2f}, worst {min(medians):.2f}"
        lines.append(f"{line} (floor {floor}, aim {aim}), {share:.0%} of read bandwidth")
        missed += [row["problem"] for row in found if row["ratio"]["median"] < floor]
    failed = [row["problem"] for row in rows if "failure" in row]
    return {"groups": lines, "below_floor": missed, "failed": failed}


def _line(row: dict[str, Any]) -> str:
    if "failure" in row:
        return f"{row['problem']}: {row['failure']}"
    times = "; ".join(f"{name} {each['median']:.0f}" for name, each in row["microseconds"].items())
    ratio = row["ratio"]
    text = f"{ratio['median']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})" if ratio else "no rival"
    failures = "".join(f"\n    {name}: {reason}" for name, reason in row["failures"].items())
    speed = f"{row['gb_per_s']:.1f} of {row['read_gb_per_s']:.1f} GB/s, {row['gflop_per_s']:.0f} GFLOP/s"
    error = row["errors"][OURS]["unquantized"]
    return f"{row['problem']}: {text}, {speed}, error {error:.3f} | us: {times}{failures}"


def _stored(file: Path | None) -> list[dict[str, Any]]:
    if file is None or not file.exists():
        return []
    rows: list[dict[str, Any]] = json.loads(file.read_text())["rows"]
    return rows


def _write(rows: list[dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    names = ("threads", "seconds", "trials", "remark")
    settings = {name: getattr(options, name) for name in names}
    document = report("quantized", settings, rows, _summary(rows))
    emit(document, False, options.output)
    return document


def _group(text: str) -> int:
    return 0 if text == "channel" else int(text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--formats", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), metavar="NxK")
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS), metavar="M", help="of A")
    parser.add_argument("--groups", nargs="+", type=_group, default=[32, 128], help="sizes, or channel")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--trials", type=int, default=16, help="for a problem that --db does not have")
    parser.add_argument("--seconds", type=float, default=3.0, help="of timing, for each problem")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--db", required=True, help="database of tuned kernels")
    parser.add_argument("--remark", default="", help="on the builds of the libraries, for the document")
    parser.add_argument("--tune-only", action="store_true", help="fill --db, time nothing")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
