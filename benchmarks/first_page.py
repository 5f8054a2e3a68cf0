"""The schedule on the README's first page, before and after its tuning, with its time.

    python -m benchmarks.first_page --output benchmarks/results/first_page.json --readme README.md

All candidates of ``examples/matmul_knobs.mlir`` are tried; then the script with the first option of every
knob and the best one are timed interleaved. ``--readme`` writes the part of the page anew; a test compares
the two. On a busy machine the ratio has a wide interval: nothing is written unless all of it is above 1.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import tuner
from benchmarks.results_file import RESULTS, add_report_options, emit, report
from tuner.core.candidate import Candidate, Value
from tuner.core.machine import variables_of
from tuner.core.matmul import Matmul
from tuner.core.serialization import seconds_text
from tuner.models.library.script_comparison import slower_by
from tuner.runtime.cpu.host import describe_machine
from tuner.space.scripts.schedule import Schedule
from tuner.space.scripts.strategy import Binder, load_strategy

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "examples" / "matmul_knobs.mlir"
FILE = RESULTS / "first_page.json"
PROBLEM = Matmul(128, 128, 128)
KNOBS = ("tile_m", "tile_n")  # that the page shows
BEGIN, END = "<!-- first_page -->\n", "<!-- /first_page -->\n"


def main() -> int:
    """Runs the benchmark; returns the exit code."""
    options = _arguments()
    document = _measured(options.trials)
    low = document["summary"]["times_as_fast"][1]
    if low <= 1:
        print(f"not written: the interval of the ratio begins at {low:.3f}: measure again", file=sys.stderr)
        return 1
    emit(document, options.json, options.output)
    if options.readme is not None:
        options.readme.write_text(with_part(options.readme.read_text(), part(document)))
    return 0


def part(document: dict[str, Any]) -> str:
    """Returns the part of the README: the knobs before and after, and the times."""
    _, best = document["rows"]
    problem = f"{PROBLEM.dtype} {PROBLEM.shape}"
    processor = document["machine"]
    isa = processor["isa"].upper().replace("AVX512", "AVX-512")
    count = document["summary"]["candidates"]
    return f"""Two knobs of [a script](examples/matmul_knobs.mlir), the sizes of its tiles, go in:

```mlir
{_lines(SCRIPT.read_text())}
```

Of {count} candidates for {problem} this one was best, with {seconds_text(best["median_s"])} on one thread
({processor["processor"]}, {isa}):

```mlir
{_lines(bound(best["knobs"]))}
```
"""


def with_part(page: str, text: str) -> str:
    """Returns a page with ``text`` between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{text}{END}{rest.partition(END)[2]}"


def bound(knobs: dict[str, Value]) -> str:
    """Returns the script with values of its knobs."""
    strategy = load_strategy("matmul_knobs", SCRIPT)
    binder = Binder((strategy,), PROBLEM, variables_of(PROBLEM, describe_machine(), 1), 1)
    return binder.bind(Candidate.of("matmul_knobs", knobs)).text


def _lines(script: str) -> str:
    """Returns the lines of the knobs that the page shows, those of many options in two."""
    lines = [line.strip() for line in script.splitlines() if any(f'knob<"{name}">' in line for name in KNOBS)]
    return "\n".join(lines).replace(" from options", "\n  from options")


def _measured(trials: int) -> dict[str, Any]:
    first = {knob.name: knob.choices[0] for knob in Schedule(SCRIPT.read_text(), SCRIPT.name).knobs}
    with tempfile.TemporaryDirectory() as folder:
        database = f"{folder}/first.db"
        run = tuner.tune(
            PROBLEM, target="cpu", strategy=str(SCRIPT), trials=trials, sampler="exhaustive", db=database
        )
        if run.best is None or run.best.time_s is None:
            raise SystemExit(f"{PROBLEM.key}: no candidate worked")
        best = run.best.knobs
        best_s = run.best.time_s
        count = run.counts.proposed
    slowdown = slower_by(PROBLEM, bound(first), bound(best))
    low, high = slowdown.interval
    rows = [
        {"problem": PROBLEM.key, "knobs": knobs, "median_s": seconds}
        for knobs, seconds in ((first, best_s * (1 + slowdown.median)), (best, best_s))
    ]
    summary = {"candidates": count, "times_as_fast": [1 + slowdown.median, 1 + low, 1 + high]}
    return report("first_page", {"trials": trials}, rows, summary)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=200, help="at most; the script has fewer candidates")
    parser.add_argument("--readme", type=Path, metavar="FILE", help="write the part of this page anew")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
