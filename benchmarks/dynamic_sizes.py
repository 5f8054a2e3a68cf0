"""A decoder layer with a dynamic number of rows next to programs that are compiled for one number of rows.

    python -m benchmarks.dynamic_sizes --rows 1 7 128 --output FILE

One object is compiled for 1 to 4096 rows (``dynamic_shapes``), with the layer of
``benchmarks.decoder_layers``; for each number of rows it is timed next to a program of these rows, untuned,
interleaved, on one thread. Ratios are the time of the static program by that of the dynamic object: 1 is as
fast. ``weights_over_static``: bytes of all packed weights of the object, by those of one static program.
"""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from torch.export import Dim

import tuner.torch
from benchmarks.decoder_layers import FLOAT, HIDDEN, decoder
from benchmarks.results_file import add_report_options, emit, report
from tuner.analysis.ratios import median_interval, paired_ratio
from tuner.models.torch.parted_function import PartedFunction
from tuner.models.torch.program_family import ProgramFamily
from tuner.runtime.timing import Call, interleaved_times

ROWS = [1, 7, 16, 64, 128, 300, 1024, 4096]
GREATEST = 4096
STATIC, DYNAMIC = "static", "dynamic"


def family_of(program: tuner.torch.TensorProgram) -> ProgramFamily:
    """Returns the family of a dynamic object, which is all of it."""
    assert isinstance(program.function, PartedFunction)
    (family,) = (part.call for part in program.function.parts if isinstance(part.call, ProgramFamily))
    return family


def weight_bytes(programs: Iterable[tuner.torch.TensorProgram]) -> int:
    """Returns the bytes of the packed weights of programs, each array once."""
    functions: list[Any] = [program.function for program in programs]
    return sum({id(array): array.nbytes for function in functions for array in function.weights}.values())


def measured(
    module: torch.nn.Module, dynamic: tuner.torch.TensorProgram, rows: int, seconds: float
) -> dict[str, Any]:
    """Returns the times of a number of rows, their ratio, and the error to eager mode."""
    x = torch.randn(rows, HIDDEN)
    with torch.no_grad():
        static = tuner.torch.compile(module, (x,))
        result = dynamic(x)
        expected = module(x).double()
        calls: dict[str, Call] = {STATIC: partial(static, x), DYNAMIC: partial(dynamic, x)}
        times = interleaved_times(calls, seconds)
    return {
        "rows": rows,
        "microseconds": {
            name: round(median_interval(found).median * 1e6, 1) for name, found in times.items()
        },
        "over_static": asdict(paired_ratio(times[STATIC], times[DYNAMIC])),
        "error_to_eager": float((result.double() - expected).norm() / expected.norm()),
        "weights_over_static": weight_bytes(family_of(dynamic).programs) / weight_bytes([static]),
        "rounds": len(times[STATIC]),
    }


def main(arguments: list[str] | None = None) -> None:
    """Times all numbers of rows, prints a line for each, and writes the document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--greatest", type=int, default=GREATEST, help="number of rows of a call")
    parser.add_argument("--seconds", type=float, default=10.0, help="of timing, for each number of rows")
    add_report_options(parser)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    module = decoder(FLOAT, 1, torch.float32)
    shapes = ({0: Dim("rows", min=1, max=options.greatest)},)
    dynamic = tuner.torch.compile(module, (torch.randn(7, HIDDEN),), dynamic_shapes=shapes)
    results = []
    for rows in options.rows:
        results.append(measured(module, dynamic, rows, options.seconds))
        print(text_of(results[-1]), file=sys.stderr, flush=True)
    family = family_of(dynamic)
    summary = {"compilations": len(family.sizes), "most_compilations": len(family.ladder)}
    settings = {name: value for name, value in vars(options).items() if name not in ("json", "output")}
    emit(report("dynamic_sizes", settings, results, summary), options.json, options.output)


def text_of(result: dict[str, Any]) -> str:
    """Returns the figures of a number of rows in one line."""
    times = result["microseconds"]
    ratio = result["over_static"]
    return (
        f"{result['rows']} rows: static {times[STATIC]:,.0f} us, dynamic {times[DYNAMIC]:,.0f} us, "
        f"{ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}] of static; "
        f"weights {result['weights_over_static']:.2f} of static"
    )


if __name__ == "__main__":
    main()
