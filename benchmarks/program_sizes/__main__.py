"""Times programs of a dynamic size n next to the same programs with n as a static size.

    python -m benchmarks.program_sizes --sizes 1 7 16 64 300 --output FILE

Each program runs untuned on one thread, with random arguments, and its two forms are timed interleaved.
``ratio`` above 1: the program of a dynamic size is faster. Its calls include the padding of arguments.
"""

import argparse
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tuner
from benchmarks.results_file import add_report_options, emit, report
from tuner.analysis.ratios import median_interval, paired_ratio
from tuner.core.dynamic_sizes import compiled_sizes_for, shape_at
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.sized_function import SizedFunction
from tuner.runtime.timing import interleaved_times

PROGRAMS = tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.mlir")))
STATIC, DYNAMIC = "static", "dynamic"
RANGE = "1..512"


def text_of(program: str) -> str:
    """Returns the MLIR of one of PROGRAMS."""
    return Path(__file__).with_name(f"{program}.mlir").read_text()


def static_text(text: str, size: int) -> str:
    """Returns a program's text as its author would write it for n = ``size``."""
    return text.replace("(%n)", "()").replace("(%n, %n)", "()").replace("?", str(size))


def arguments_of(function: SizedFunction, size: int, rng: np.random.Generator) -> tuple[Any, ...]:
    """Returns random f32 arguments for a call of ``size``."""
    shapes = [shape_at(type_.shape, size) for type_ in function.signature.arguments]
    return tuple(rng.standard_normal(shape, np.float32) for shape in shapes)


def measured(program: str, function: SizedFunction, size: int, seconds: float) -> dict[str, Any]:
    """Returns the row of the document for a program at a size: times, their ratio, the largest difference."""
    static = tuner.compile_program(static_text(text_of(program), size), "cpu")
    assert isinstance(static, FusedFunction)
    arguments = arguments_of(function, size, np.random.default_rng(size))
    difference = float(np.abs(function(*arguments) - static(*arguments)).max())
    calls = {STATIC: partial(static, *arguments), DYNAMIC: partial(function, *arguments)}
    times = interleaved_times(calls, seconds)
    return {
        "program": program,
        "n": size,
        "compiled_size": compiled_sizes_for(function.ladder, size),
        "microseconds": {
            name: round(median_interval(found).median * 1e6, 2) for name, found in times.items()
        },
        "ratio": asdict(paired_ratio(times[STATIC], times[DYNAMIC])),
        "difference": difference,
        "rounds": len(times[STATIC]),
    }


def main(arguments: list[str] | None = None) -> None:
    """Times all programs and sizes, prints a line for each, and writes the document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", nargs="*", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--sizes", type=int, nargs="*", default=[1, 7, 16, 64, 300])
    parser.add_argument("--seconds", type=float, default=3.0, help="of timing, for each program and size")
    add_report_options(parser)
    options = parser.parse_args(arguments)
    rows = []
    for program in options.program:
        function = tuner.compile_program(text_of(program), "cpu", sizes=RANGE)
        assert isinstance(function, SizedFunction)
        for size in options.sizes:
            rows.append(measured(program, function, size, options.seconds))
            print(line_of(rows[-1]), file=sys.stderr, flush=True)
    settings = {name: value for name, value in vars(options).items() if name not in ("json", "output")}
    emit(report("program_sizes", settings, rows, {}), options.json, options.output)


def line_of(row: dict[str, Any]) -> str:
    """Returns a row in one line."""
    times = ", ".join(f"{name} {found} us" for name, found in row["microseconds"].items())
    where = f"{row['program']} at {row['n']} (in {row['compiled_size']})"
    return f"{where}: {times}, {row['ratio']['median']:.2f} times as fast"


if __name__ == "__main__":
    main()
