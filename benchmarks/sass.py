"""What machine code the GPU strategies end in: the instructions that must be there, and no spills.

    pip install -e '.[bench,cuda]'
    python -m benchmarks.sass --chip sm_90 --json
    python -m benchmarks.sass --chip sm_90a --json      # points of wgmma

Fails (exit code 1) when a point lacks an instruction that it is made for, or spills a register.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from typing import Any

from benchmarks.results_file import add_report_options, emit, report
from tests.support.gpu_points import Builder, Point, points_of
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import CandidateError
from tuner.gpu.target.compiler import locate
from tuner.runtime.wheel_tools import Tool

INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.x]*)", re.MULTILINE)
TIMEOUT_S = 60.0
SHOWN = (
    "HGMMA",
    "QGMMA",
    "UTMALDG",
    "UTMASTG",
    "STSM",
    "HMMA",
    "DMMA",
    "FFMA",
    "DFMA",
    "LDSM",
    "LDGSTS",
    "LDS",
    "LDG",
    "STG",
    "RED",
    "BAR",
    "LDL",
    "STL",
)


def main() -> None:
    """Compiles every point, disassembles it and checks it."""
    options = _arguments()
    tool = locate("nvdisasm")
    if tool is None:
        sys.exit("nvdisasm: found none, allowed one on PATH or from nvidia-cuda-nvdisasm")
    builder = Builder(options.chip)
    rows = []
    for point in points_of(options.chip):
        rows.append(_checked(point, builder, tool))
        verdict = "ok  " if rows[-1]["is_right"] else "FAIL"
        print(f"{verdict} {point.text}: {rows[-1]['found']}", file=sys.stderr)
    summary = {"points": len(rows), "right": sum(row["is_right"] for row in rows), "nvdisasm": tool.origin}
    emit(report("sass", {"chip": options.chip}, rows, summary), options.json, options.output)
    sys.exit(0 if summary["right"] == summary["points"] else 1)


def mnemonics(program: KernelCode, tool: Tool) -> Counter[str]:
    """Returns how often each instruction stands in the program's machine code."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(program.binary)
        file.flush()
        done = subprocess.run(
            [str(tool.path), "-c", file.name], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
    return Counter(INSTRUCTION.findall(done.stdout))


def _checked(point: Point, builder: Builder, tool: Tool) -> dict[str, Any]:
    try:
        return _row(point, builder.build(point).program, tool)
    except CandidateError as error:
        return {"point": point.text, "is_right": False, "found": f"{error.stage.value}: {error.reason}"}


def _row(point: Point, program: KernelCode, tool: Tool) -> dict[str, Any]:
    counts = mnemonics(program, tool)
    missing = [name for name in point.mnemonics if not any(each.startswith(name) for each in counts)]
    spilled = sum(each.spilled_bytes for each in program.resources)
    return {
        "point": point.text,
        "is_right": not missing and spilled == 0,
        "missing": missing,
        "spilled_bytes": spilled,
        "registers": max(each.registers for each in program.resources),
        "shared_bytes": max(launch.dynamic_shared_bytes for launch in program.launches),
        "instructions": counts.total(),
        "found": {name: count for name, count in sorted(counts.items()) if name.startswith(SHOWN)},
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chip", default="sm_90")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
