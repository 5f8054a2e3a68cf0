"""Small PyTorch modules drawn by a seed: each result equals eager's, or tuner refuses in one line.

    python -m benchmarks.drawn_small_modules --kept small.jsonl --output small.json
    python -m benchmarks.drawn_small_modules --kept one.jsonl --seed 3 --first 17 --modules 1

A module is a few lines of source text: a reduction of a length from 1 to 70, two or three that meet in one
expression, a loss, a metric, a mask, arithmetic of a dynamic size, a power, a conversion, or a view that is
written in place. It is compiled by ``tuner.torch.compile``, with or without ``fallback="eager"``, or by the
back end of ``torch.compile``, and called with plain numbers, with special ones (NaN, infinities, zeros,
subnormal and large numbers) or with other sizes. Its results, and what it leaves in its arguments, are to be
those of eager PyTorch. Outcomes are appended to --kept at once: the same command goes on where it was
stopped. The exit status is 1 where a module is wrong, crashes, hangs or ends in an exception that is not one
of tuner's.
"""

import argparse
import sys
from collections import Counter
from dataclasses import asdict
from typing import Any

import torch

from benchmarks.kept_rows import add_kept_options, keep_row, kept_rows
from benchmarks.op_corpus.outcome import BAD, RIGHT, OpOutcome
from benchmarks.op_corpus.pool import all_checked, asked
from benchmarks.op_corpus.small_modules.checking import checked_small_module
from benchmarks.op_corpus.small_modules.families import FAMILIES, drawn
from benchmarks.results_file import add_report_options, emit, report
from tuner.runtime.workers.protocol import ServiceSpec
from tuner.runtime.workers.worker import Worker

Row = dict[str, Any]  # of JSON


def main() -> None:
    """Checks what is not in the kept file yet; exits with 1 where a module is neither right nor refused."""
    options = _arguments()
    drawn_by = {"seed": options.seed, "torch": torch.__version__}
    rows = {row["module"]: row for row in kept_rows(options.kept, drawn_by)}
    if options.again:
        rows = {number: row for number, row in rows.items() if row["outcome"] not in BAD}
    numbers = range(options.first, options.first + options.modules)
    todo = [number for number in numbers if number not in rows]
    print(f"{len(numbers) - len(todo)} modules are kept, {len(todo)} are left", file=sys.stderr, flush=True)

    def keep(row: Row) -> None:
        keep_row(options.kept, row)
        rows[row["module"]] = row
        if row["outcome"] in BAD:
            print(f"{row['module']} {row['family']}: {row['reason']}", file=sys.stderr, flush=True)

    def check(worker: Worker, number: int) -> Row:
        found = asked(worker, number, options.seed)
        return row_of(number, options.seed, found)

    spec = ServiceSpec("small module", checked_small_module)
    all_checked(todo, spec, check, keep, options.jobs, options.limit_s)
    found = [rows[number] for number in numbers if number in rows]
    summary = summary_of(found) | {"left": len(numbers) - len(found)}
    print(summary["by_outcome"], file=sys.stderr)
    settings = drawn_by | {"first": options.first, "modules": options.modules}
    listed = [row for row in found if row["outcome"] != RIGHT]
    emit(report("drawn_small_modules", settings, listed, summary), options.json, options.output)
    sys.exit(int(bool(summary["bad"])))


def row_of(number: int, seed: int, outcome: OpOutcome) -> Row:
    """Returns the row of a module: of one that is not right with its text and its arguments."""
    module = drawn(number, seed)
    row = {
        "module": number,
        "family": module.family,
        "way": module.way,
        "outcome": outcome.kind,
        "reason": outcome.reason,
    }
    if outcome.kind == RIGHT:
        return row
    arguments = [asdict(argument) for argument in module.module.arguments]
    return row | {"text": module.module.text, "arguments": arguments}


def summary_of(rows: list[Row]) -> dict[str, Any]:
    """Returns counts of outcomes: of all modules, by family and by how they are compiled."""
    return {
        "by_outcome": _counts(rows),
        "by_family": {
            family: _counts([row for row in rows if row["family"] == family]) for family in FAMILIES
        },
        "by_way": {
            way: _counts([row for row in rows if row["way"] == way])
            for way in sorted({row["way"] for row in rows})
        },
        "bad": sum(row["outcome"] in BAD for row in rows),
    }


def _counts(rows: list[Row]) -> dict[str, int]:
    return dict(Counter(row["outcome"] for row in rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_kept_options(parser, "module")
    parser.add_argument(
        "--again", action="store_true", help="check kept modules again that were neither right nor refused"
    )
    parser.add_argument("--modules", type=int, default=400)
    parser.add_argument("--first", type=int, default=0, help="number of the first module")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
