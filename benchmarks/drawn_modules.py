"""Random PyTorch modules with random inputs: each result equals eager's, or tuner refuses in one line.

    python -m benchmarks.drawn_modules --output benchmarks/results/drawn_modules.json

A module is a chain of 2 to 5 steps, of f32, f64 or bf16, with sizes of 0 and 1 among others. It is compiled
once and called ten times, with random inputs or in random surroundings: NaN, infinities, denormals, zeros,
expanded, strided, negated and overlapping tensors, other threads, after a fork, inference mode, autocast and
another default type. The exit status is 1 where a result is wrong, or a call crashes, hangs or ends in an
exception that is not one of tuner's.
"""

import argparse
import sys
from collections import Counter
from dataclasses import asdict
from typing import Any

from benchmarks.op_corpus.module_outcome import checked_module
from benchmarks.op_corpus.outcome import BAD, OpOutcome
from benchmarks.op_corpus.pool import MEMORY_BYTES, asked
from benchmarks.results_file import add_report_options, emit, report
from tuner.runtime.workers.protocol import ServiceSpec
from tuner.runtime.workers.worker import Worker


def main() -> None:
    """Checks modules in a process of their own; exits with 1 where one is neither right nor refused."""
    options = _arguments()
    worker = Worker(ServiceSpec("drawn module", checked_module), MEMORY_BYTES)
    counts: dict[str, Counter[str]] = {}
    bad: list[dict[str, Any]] = []
    for number in range(options.first, options.first + options.modules):
        for variant, found in _outcomes(worker, number, options.seed).items():
            counts.setdefault(variant, Counter())[found.kind] += 1
            if found.kind in BAD:
                bad.append({"module": number, "variant": variant} | asdict(found))
                print(f"{number} {variant}: {found}", file=sys.stderr, flush=True)
    worker.kill()
    rows = [{"variant": name} | dict(found) for name, found in sorted(counts.items())]
    summary = {"by_outcome": dict(sum(counts.values(), Counter())), "bad": bad}
    settings = {"seed": options.seed, "first": options.first, "modules": options.modules}
    print(summary["by_outcome"], file=sys.stderr)
    emit(report("drawn_modules", settings, rows, summary), options.json, options.output)
    sys.exit(int(bool(bad)))


def _outcomes(worker: Worker, number: int, seed: int) -> dict[str, OpOutcome]:
    value = asked(worker, number, seed)
    if isinstance(value, OpOutcome):
        return {"compiled": value}
    outcomes: dict[str, OpOutcome] = value
    return outcomes


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--modules", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first module")
    parser.add_argument("--seed", type=int, default=0)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
