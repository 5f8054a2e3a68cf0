"""PyTorch's own samples of its operators: each result equals eager's, or tuner refuses in one line.

    python -m benchmarks.op_samples --kept samples.jsonl --output benchmarks/results/op_samples.json
    python -m benchmarks.op_samples --kept f32.jsonl --dtypes f32 i64 --samples 1 --jobs 2
    python -m benchmarks.op_samples --kept add.jsonl --ops add sub

Each operator of ``torch.testing``'s list is compiled by ``tuner.torch.compile`` for a few drawn samples of
each type, in processes of their own, and compared with eager PyTorch and with f64. Samples of one operator
are compiled as one module first, and each alone where that is not right. The outcomes of each module are
appended to --kept at once: the same command goes on where it was stopped. Another --seed draws others. The
exit status is 1 where a sample is wrong, crashes, hangs or ends in an exception that is not one of tuner's.
"""

import argparse
import itertools
import json
import re
import sys
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.kept_rows import add_kept_options, keep_row, kept_rows
from benchmarks.op_corpus.outcome import BAD, NO_SAMPLE, REFUSED, RIGHT, OpOutcome, checked
from benchmarks.op_corpus.pool import all_checked, asked
from benchmarks.op_corpus.samples import DTYPES, OpSampleName, operators, pairs
from benchmarks.results_file import add_report_options, emit, report
from tuner.runtime.workers.protocol import ServiceSpec
from tuner.runtime.workers.worker import Worker

REFUSALS = 10  # that are listed
REASON_CHARS = 120
LINE_EVERY = 100  # samples
FLOATS = ("f32", "f64", "bf16", "f16")  # form one module per operator, other types another
LETTERS = {RIGHT: "=", REFUSED: "-", NO_SAMPLE: "."}  # in the table; bad outcomes are written out
# What differs from operator to operator in a refusal
SPECIFIC = (
    (r"'[^']*'", "'…'"),
    (r"error: (callsite\(.*\)|loc\(.*\)|\"[^\"]*\":\d+:\d+): ", ""),  # the place in the module
    (r"\b(aten|prims)\.[\w.]+", "aten.…"),
    (r"\d+", "N"),
    (r"payload:N:N: ", ""),
)
Samples = tuple[OpSampleName, ...]


@dataclass(frozen=True)
class CheckedSample:
    """A sample and what became of it."""

    sample: OpSampleName
    outcome: OpOutcome


def main() -> None:
    """Checks what is not in the kept file yet; exits with 1 where something is neither right nor refused."""
    options = _arguments()
    settings = {name: getattr(options, name) for name in ("seed", "samples", "ops", "dtypes")}
    asked = _samples(options)
    rows_before = map(_row, kept_rows(options.kept, {"seed": options.seed, "torch": torch.__version__}))
    kept = {row.sample: row for row in rows_before}
    rows = [kept[each] for each in asked if each in kept]
    todo = [each for each in asked if each not in kept]
    print(f"{len(rows)} samples are kept, {len(todo)} are left", file=sys.stderr, flush=True)
    rows += _all_checked(todo, options.kept, options.jobs, options.limit_s)
    summary = _summary(rows) | {"left": len(asked) - len(rows)}
    for name, value in summary.items():
        print(f"{name:12s} {json.dumps(value, ensure_ascii=False)}", file=sys.stderr)
    settings |= {"torch": torch.__version__}
    emit(report("op_samples", settings, _table(rows), summary), options.json, options.output)
    sys.exit(int(bool(summary["bad"])))


def _samples(options: argparse.Namespace) -> list[OpSampleName]:
    """Returns the samples that are asked for: the first of all operators, then the second of all."""
    chosen = [(op, dtype) for op, dtype in pairs() if dtype in options.dtypes]
    if options.ops:
        chosen = [(op, dtype) for op, dtype in chosen if op in options.ops]
    return [
        OpSampleName(op, dtype, number, options.seed)
        for op, dtype in chosen
        for number in range(options.samples)
    ]


def _modules(samples: list[OpSampleName]) -> list[Samples]:
    """Returns samples by operator, floats apart from other types: each is one module first."""
    modules: dict[tuple[str, bool], list[OpSampleName]] = {}
    for each in samples:
        modules.setdefault((each.op, each.dtype in FLOATS), []).append(each)
    return [tuple(each) for each in modules.values()]


def _parts(samples: Samples) -> list[Samples]:
    """Returns the parts of a module that is not right: those of each type, or each sample."""
    by_type = [tuple(group) for _, group in itertools.groupby(samples, lambda each: each.dtype)]
    return by_type if len(by_type) > 1 else [(each,) for each in samples]


def _all_checked(todo: list[OpSampleName], kept: Path, jobs: int, limit_s: float) -> list[CheckedSample]:
    """Checks samples in ``jobs`` processes; begins none after ``limit_s`` seconds. Appends to ``kept``."""
    rows: list[CheckedSample] = []
    start_s = time.monotonic()

    def keep(found: list[CheckedSample]) -> None:
        for row in found:
            keep_row(kept, asdict(row.sample) | asdict(row.outcome))
            if row.outcome.kind in BAD:
                name = f"{row.sample.op} {row.sample.dtype} {row.sample.number}"
                print(f"{name}: {row.outcome}", file=sys.stderr, flush=True)
            rows.append(row)
            if len(rows) % LINE_EVERY == 0:
                _print_progress(len(rows), len(todo), time.monotonic() - start_s)

    all_checked(_modules(todo), ServiceSpec("op sample", checked), _checked, keep, jobs, limit_s)
    return rows


def _checked(worker: Worker, samples: Samples) -> list[CheckedSample]:
    """Returns the outcome of each sample: that of all as one module where it is right, else of its parts."""
    whole = _outcomes(worker, samples)
    kinds = {each.outcome.kind for each in whole} - {NO_SAMPLE}
    if len(samples) == 1 or kinds <= {RIGHT}:
        return whole
    parts = [row for part in _parts(samples) for row in _checked(worker, part)]
    is_right = all(row.outcome.kind in (RIGHT, NO_SAMPLE) for row in parts)
    return whole if is_right and kinds & set(BAD) else parts  # whole: what is wrong in one module alone


def _outcomes(worker: Worker, samples: Samples) -> list[CheckedSample]:
    """Returns the outcomes of samples that are compiled as one module."""
    value = asked(worker, samples)
    if isinstance(value, OpOutcome):
        value = (value,) * len(samples)
    return [CheckedSample(*each) for each in zip(samples, value, strict=True)]


def _print_progress(count: int, total: int, seconds: float) -> None:
    left_s = seconds / count * (total - count)
    print(f"{count}/{total} {seconds:.0f} s, {left_s / 60:.0f} minutes left", file=sys.stderr, flush=True)


def _row(found: dict[str, Any]) -> CheckedSample:
    outcome = OpOutcome(found.pop("kind"), found.pop("reason"))
    return CheckedSample(OpSampleName(**found), outcome)


def _summary(rows: list[CheckedSample]) -> dict[str, Any]:
    """Returns counts by outcome and type, the share that is right, and the most frequent refusals."""
    counts = {
        dtype: dict(Counter(each.outcome.kind for each in rows if each.sample.dtype == dtype))
        for dtype in DTYPES
    }
    refusals = Counter(_class_of(each.outcome.reason) for each in rows if each.outcome.kind == REFUSED)
    return {
        "samples": sum(each.outcome.kind != NO_SAMPLE for each in rows),
        "by_outcome": dict(Counter(each.outcome.kind for each in rows)),
        "by_dtype": counts,
        "right_share": {dtype: _share(found) for dtype, found in counts.items() if found},
        "refusals": dict(refusals.most_common(REFUSALS)),
        "bad": sum(each.outcome.kind in BAD for each in rows),
    }


def _share(counts: dict[str, int]) -> float:
    total = sum(count for kind, count in counts.items() if kind != NO_SAMPLE)
    return round(counts.get(RIGHT, 0) / total, 3) if total else 0.0


def _class_of(reason: str) -> str:
    """Returns a refusal without what is of one operator."""
    for pattern, text in SPECIFIC:
        reason = re.sub(pattern, text, reason)
    return reason[:REASON_CHARS]


def _table(rows: list[CheckedSample]) -> list[dict[str, Any]]:
    """Returns a row for each operator: a letter for each sample of a type."""
    cells: dict[str, dict[str, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
    for each in rows:
        kind = each.outcome.kind
        cells[each.sample.op][each.sample.dtype][each.sample.number] = LETTERS.get(kind, f"({kind})")
    order = [op for op in operators() if op in cells]
    return [
        {"op": op} | {name: "".join(found[at] for at in sorted(found)) for name, found in cells[op].items()}
        for op in order
    ]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_kept_options(parser, "sample")
    parser.add_argument("--ops", nargs="*", default=[], help="only these operators")
    parser.add_argument("--dtypes", nargs="*", default=list(DTYPES), choices=list(DTYPES))
    parser.add_argument("--samples", type=int, default=3, help="of each operator and type, at most")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
