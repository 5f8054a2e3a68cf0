"""How many best scripts stock mlir-opt runs, and what the ops of tuner in the others gain.

    python -m benchmarks.stock_scripts --json --output benchmarks/results/stock_scripts.json

Each problem is tuned without a warm start. Where the best script calls ops of tuner, it is timed interleaved
with the best one that stock mlir-opt runs, and, per op, with the best one without this op: a slowdown of 0.02
means that the other script takes 2 % longer. ``chosen`` is the time of the selected script divided by the
least time of the same final re-measurement: what the preference for stock scripts costs. Where mlir-opt is
installed, each exported stock script is run by it on the payload next to it.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import tuner
from benchmarks.results_file import add_report_options, emit, report
from tuner.core.errors import TunerError
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.problem_text import parse_shape
from tuner.core.queries import TrialQuery
from tuner.core.trials import StoredTrial
from tuner.db.store import Store
from tuner.models.library.script_comparison import slower_by
from tuner.results.exported_trial import exported, source_of
from tuner.space.scripts.header import custom_ops
from tuner.targets.registry import real_backends

SHAPES = (
    *("64x64x64", "96x160x128", "128x128x128", "256x256x256", "300x300x300", "333x777x501"),
    *("512x512x512", "512x768x384", "16x2048x2048", "1024x1024x1024", "2048x64x1024", "1000x700x333"),
)
DTYPES = ("f32", "bf16", "i8")
MLIR_OPT = ("mlir-opt-22", "mlir-opt")


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    rows = []
    for dtype in options.dtypes:
        for shape in options.shapes:
            rows.append(_row(Matmul(*parse_shape(shape), dtype=dtype), options))
            print(_line(rows[-1]), file=sys.stderr, flush=True)
    settings = {name: value for name, value in vars(options).items() if name not in ("json", "output")}
    summary = _summary(rows)
    print(", ".join(f"{name} {value}" for name, value in summary.items()), file=sys.stderr)
    emit(report("stock_scripts", settings, rows, summary), options.json, options.output)


def _row(problem: Problem, options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/bench.db") as store:
        tuned = tuner.tune(
            problem, target="cpu", trials=options.trials, seed=options.seed, db=f"{folder}/bench.db"
        )
        if tuned.best is None:
            raise SystemExit(f"{problem.key}: no candidate worked")
        best = store.trial(tuned.best.id)
        trials = [each for each in store.trials(TrialQuery(run=best.run)) if each.best_s is not None]
        finals_s = [each.final.median_s for each in trials if each.final is not None]
        chosen = None if best.final is None else best.final.median_s / min(finals_s)
        ops = custom_ops(best.script_text)
        return {
            "problem": problem.key,
            "strategy": best.record.candidate.strategy,
            "reliability": best.reliability.text,
            "chosen": chosen,
            "custom_ops": ops,
            "runs": None if ops else _runs_on_stock(store, best, Path(folder)),
            "stock": _loss(problem, best, trials) if ops else None,
            "without": {op: _loss(problem, best, trials, op) for op in ops},
        }


def _loss(
    problem: Problem, best: StoredTrial, trials: list[StoredTrial], op: str = ""
) -> dict[str, Any] | None:
    """Returns how much longer the fastest script without ``op`` takes than the best; None: none was timed.

    ``op`` "": the fastest that calls no op of tuner.
    """
    calls = [(each, custom_ops(each.script_text)) for each in trials]
    allowed = [each for each, ops in calls if (op not in ops if op else not ops)]
    if not allowed:
        return None
    other = min(allowed, key=lambda each: each.best_s or 0.0)
    try:
        slowdown = slower_by(problem, other.script_text, best.script_text)
    except TunerError as error:
        return {"failure": str(error)}
    low, high = slowdown.interval
    return {"slower": slowdown.median, "interval": [low, high], "noise": slowdown.noise}


def _runs_on_stock(store: Store, best: StoredTrial, folder: Path) -> bool | None:
    """Returns whether stock mlir-opt applies an exported script to its payload; None: not installed."""
    mlir_opt = next(filter(None, map(shutil.which, MLIR_OPT)), None)
    if mlir_opt is None:
        return None
    backends, script, payload = real_backends(), folder / "best.mlir", folder / "best.source.mlir"
    script.write_bytes(exported(backends, store, best, "script", script, constants=False))
    payload.write_text(source_of(backends, best))
    library = f"--transform-preload-library=transform-library-paths={script}"
    command = [mlir_opt, str(payload), library, "--transform-interpreter"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode == 0 and "vector." in done.stdout


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    own = [row for row in rows if row["custom_ops"]]
    losses = [row["stock"]["slower"] for row in own if row["stock"] and "slower" in row["stock"]]
    chosen = [row["chosen"] for row in rows if row["chosen"] is not None]
    return {
        "problems": len(rows),
        "stock": len(rows) - len(own),
        "run_by_mlir_opt": sum(row["runs"] is True for row in rows),
        "median_loss_of_stock": statistics.median(losses) if losses else None,
        "chosen_geometric_mean": statistics.geometric_mean(chosen) if chosen else None,
    }


def _line(row: dict[str, Any]) -> str:
    ops = ", ".join(f"{op} {_percent(loss)}" for op, loss in row["without"].items()) or "stock"
    stock = f", stock {_percent(row['stock'])}" if row["custom_ops"] else ""
    return f"{row['problem']}: {row['strategy']}: {ops}{stock}"


def _percent(loss: dict[str, Any] | None) -> str:
    if loss is None or "failure" in loss:
        return "none" if loss is None else loss["failure"]
    low, high = loss["interval"]
    return f"{loss['slower']:+.1%} [{low:+.1%}, {high:+.1%}]"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=list(SHAPES), metavar="MxNxK")
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES))
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
