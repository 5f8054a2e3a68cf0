"""Start-up and per-trial costs of the code, next to those of an earlier commit in the same run.

    python -m benchmarks.startup --against 6ee808f --output benchmarks/results/startup.json

Each figure is measured in both trees, interleaved, always in a fresh interpreter: the import of ``tuner``,
``tuner --help``, ``tuner history`` of an empty database, the start of a process that compiles (interpreter
and imports), the processor time per trial of the process that tunes, and the processor time from knobs to
cubin of the points of ``benchmarks.gpu_compile``. The least time of all rounds counts: what disturbs a
process only makes it slower.
The earlier commit is checked out into a temporary folder; both use the packages of this environment.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.results_file import add_report_options, emit, report

ROOT = Path(__file__).parents[1]
IMPORT = "import time; start = time.perf_counter(); import tuner; print(time.perf_counter() - start)"
CHILD = "import tuner.runtime.workers.child, tuner.runtime.workers.services, tuner.targets.cpu.compiler"
TRIALS = 30
OWN = f"""
import tempfile, time
import tuner
with tempfile.TemporaryDirectory() as folder:
    start = time.process_time()
    tuner.tune(tuner.Matmul(256, 256, 256), "cpu", {TRIALS}, seed=0, db=folder + "/bench.db")
    print((time.process_time() - start) / {TRIALS})
"""
GPU = ("-m", "benchmarks.gpu_compile", "--json", "--pin", "--repeats", "1")


def main() -> None:
    """Measures; exits with 1 where a figure is above its limit, or above the earlier commit's by 10 %."""
    options = _options()
    with _checked_out(options.against) as earlier:
        rows = [_row(name, measure, options.rounds, earlier) for name, measure in MEASURES.items()]
    summary = {row["name"]: {"now_s": row["now_s"], "ratio": row["ratio"]} for row in rows}
    settings = {"against": options.against, "rounds": options.rounds, "trials": TRIALS}
    emit(report("startup", settings, rows, summary), options.json, options.output)
    sys.exit(any(row["now_s"] > LIMITS_S.get(row["name"], row["earlier_s"] * 1.1) for row in rows))


def _import_s(tree: Path) -> float:
    return float(_python(tree, "-c", IMPORT))


def _help_s(tree: Path) -> float:
    return _wall_s(tree, "-m", "tuner", "--help")


def _history_s(tree: Path) -> float:
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{folder}/history.db"
        _python(tree, "-m", "tuner", "db", "upgrade", "--db", database)  # makes the tables
        return _wall_s(tree, "-m", "tuner", "history", "--db", database)


def _child_s(tree: Path) -> float:
    return _wall_s(tree, "-P", "-c", CHILD)


def _own_s(tree: Path) -> float:
    return float(_python(tree, "-c", OWN).splitlines()[-1])


def _gpu_compile_s(tree: Path) -> float:
    return float(json.loads(_python(tree, *GPU))["summary"]["median_processor_s"])


MEASURES: dict[str, Callable[[Path], float]] = {
    "import": _import_s,
    "help": _help_s,
    "history": _history_s,
    "child start": _child_s,
    "own time of a trial": _own_s,
    "gpu compile": _gpu_compile_s,
}
LIMITS_S = {"import": 0.1, "help": 0.4, "child start": 0.2}  # others: next to the earlier commit


def _row(name: str, measure: Callable[[Path], float], rounds: int, earlier: Path) -> dict[str, Any]:
    measure(ROOT), measure(earlier)  # writes byte code, reads files
    times = [(measure(ROOT), measure(earlier)) for _ in range(rounds)]
    now_s, earlier_s = (min(each) for each in zip(*times, strict=True))
    print(f"{name:24s} {now_s:.4f} s, earlier {earlier_s:.4f} s", file=sys.stderr, flush=True)
    ratio = now_s / earlier_s
    return {"name": name, "now_s": now_s, "earlier_s": earlier_s, "ratio": ratio, "times_s": times}


def _wall_s(tree: Path, *arguments: str) -> float:
    start = time.perf_counter()
    _python(tree, *arguments)
    return time.perf_counter() - start


def _python(tree: Path, *arguments: str) -> str:
    """Runs an interpreter that imports packages from the tree first.

    Raises CalledProcessError where it fails.
    """
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command,
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return done.stdout


@contextmanager
def _checked_out(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "earlier"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", str(tree), commit], cwd=ROOT, check=True)
        try:
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", required=True, metavar="COMMIT")
    parser.add_argument("--rounds", type=int, default=5)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
