"""Checks everything that needs a GPU, on a machine that has one and no network: ``make gpu-check``.

    python -m benchmarks.gpu_check                      on the GPU here, within 8 minutes
    python -m benchmarks.gpu_check --device simulator   what needs no GPU, on the simulated one
    python -m benchmarks.gpu_check --device stub        the same through a stand-in for the driver

Parts: environment, strategies (GPU against simulator), sanitizer, programs, timing, ranking, tuning. Each
runs in a process of its own with a limit of its own; what crashes, hangs or is wrong there does not end the
check. What passed before with the same PTX, by the results file, is not asked again; with --all it is. Exits
with 0 only if nothing was wrong, with 2 where there is no GPU. Results of a GPU are written to
benchmarks/results/gpu_check_CHIP.json.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.gpu_check.budget import TOTAL_S, WEIGHTS, Budget
from benchmarks.gpu_check.checks import STATUSES, PartResult
from benchmarks.gpu_check.device_under_test import CUDA, DEVICES, Bed, bed_of
from benchmarks.gpu_check.runner import run_part
from benchmarks.results_file import RESULTS, emit, report, seconds_option
from tuner.core.errors import DeviceError

RIGHT, WRONG, MISUSE, INTERRUPTED = 0, 1, 2, 130


def main() -> None:
    """Runs the check."""
    options = _arguments()
    try:
        bed = bed_of(options.device, options.quick)
    except DeviceError as error:
        print(f"gpu-check: {error}; --device simulator checks what needs no GPU", file=sys.stderr)
        sys.exit(MISUSE)
    output = options.output or default_output(bed)
    if output is not None and not output.parent.is_dir():
        print(
            f"gpu-check: output: found no folder {output.parent}, allowed one that is there", file=sys.stderr
        )
        sys.exit(MISUSE)
    if not options.all:
        bed = replace(bed, earlier=output)
    began_s = time.monotonic()
    results: list[PartResult] = []
    code = INTERRUPTED
    try:
        for part in options.parts:
            limit_s = Budget(options.parts, options.seconds).limit_s(part, time.monotonic() - began_s)
            print(f"{part}: up to {limit_s:.0f} s", file=sys.stderr, flush=True)
            results.append(run_part(part, bed, limit_s))
            print(indented(results[-1]), file=sys.stderr, flush=True)
        code = exit_code(tuple(results))
    except KeyboardInterrupt:
        print("interrupted; what is known is written", file=sys.stderr)
    document = document_of(bed, options.seconds, tuple(results), time.monotonic() - began_s)
    emit(document, options.json, output)
    if not options.json:
        print(table(tuple(results)))
    sys.exit(code)


def exit_code(results: tuple[PartResult, ...]) -> int:
    """Returns 0 where no part failed."""
    return WRONG if any(result.status == "failed" for result in results) else RIGHT


def table(results: tuple[PartResult, ...]) -> str:
    """Returns one line for each part."""
    lines = [
        f"{'part':12s} {'':7s} {'passed':>7s} {'failed':>7s} {'skipped':>8s} {'no time':>8s} {'seconds':>8s}"
    ]
    for result in results:
        passed, failed, skipped = (result.count(status) for status in STATUSES)
        counts = f"{passed:7d} {failed:7d} {skipped:8d} {len(result.left_out):8d}"
        lines.append(f"{result.name:12s} {result.status:7s} {counts} {result.seconds:8.1f}")
    return "\n".join(lines)


def indented(result: PartResult) -> str:
    """Returns the messages of a part, indented."""
    verdict = f"  {result.status} in {result.seconds:.1f} s"
    return "\n".join([verdict, *(f"  {line}" for line in result.words)])


def document_of(bed: Bed, limit_s: float, results: tuple[PartResult, ...], seconds: float) -> dict[str, Any]:
    """Returns the results file: the form of all benchmarks, one row for each check."""
    settings = {"device": bed.device, "chip": bed.chip, "quick": bed.is_quick, "limit_s": limit_s}
    rows = [row.document(result.name) for result in results for row in result.rows]
    parts = {
        result.name: {
            "status": result.status,
            **{status: result.count(status) for status in STATUSES},
            "left_out": list(result.left_out),
            "seconds": round(result.seconds, 1),
        }
        for result in results
    }
    is_right = exit_code(results) == RIGHT and bool(results)
    summary = {"passed": is_right, "seconds": round(seconds, 1), "parts": parts}
    return report("gpu_check", settings, rows, summary)


def default_output(bed: Bed) -> Path | None:
    """Returns the file for results of a GPU; None for simulator and stub, whose results are not kept."""
    return RESULTS / f"gpu_check_{bed.chip}.json" if bed.is_hardware else None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=DEVICES, default=CUDA)
    parser.add_argument("--parts", nargs="+", choices=WEIGHTS, default=list(WEIGHTS), metavar="PART")
    parser.add_argument("--seconds", type=seconds_option, default=TOTAL_S, help="for all parts together")
    parser.add_argument("--quick", action="store_true", help="a few checks of each part")
    parser.add_argument("--all", action="store_true", help="also what passed before with the same code")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--output", type=Path, help="write the document to this file")
    options = parser.parse_args()
    options.parts = tuple(
        part for part in WEIGHTS if part in options.parts
    )  # in the order that shares are made for
    return options


if __name__ == "__main__":
    main()
