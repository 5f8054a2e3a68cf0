"""What it takes to see weights that were written: each option of the back end, next to version counters.

    python -m benchmarks.watched_weights --output FILE

Linear layers without bias, compiled by torch.compile(backend="tuner") with each option, are timed interleaved
on one thread. Ratios are times over that of "versions"; ``calls`` is how many calls read all weights.
"""

import argparse
import sys
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

import tuner.torch  # noqa: F401 - registers the back end
from benchmarks.results_file import add_report_options, emit, report
from tuner.analysis.ratios import median_interval, paired_ratio
from tuner.models.torch.bound_graph import VERSIONS, WATCHED
from tuner.models.torch.dynamo_backend import NAME, WEIGHTS
from tuner.models.torch.weights import WeightSamples
from tuner.runtime.timing import Call, interleaved_times

SIZES = (1024, 4096)
ROWS = (1, 16, 256)


def measured(size: int, rows: int, seconds: float) -> dict[str, Any]:
    """Returns the row of the document for a layer of size x size and a number of rows."""
    torch.manual_seed(0)
    module = nn.Linear(size, size, bias=False).eval()
    x = torch.randn(rows, size)
    calls: dict[str, Call] = {}
    with torch.no_grad():
        for option in WATCHED:
            torch.compiler.reset()
            compiled: Any = torch.compile(module, backend=NAME, options={WEIGHTS: option})
            compiled(x)
            calls[option] = partial(compiled, x)
        times = interleaved_times(calls, seconds)
    medians = {option: median_interval(found).median for option, found in times.items()}
    samples = WeightSamples((module.weight,), 2 * rows * size * size, np.random.default_rng(0))
    return {
        "size": size,
        "rows": rows,
        "calls": samples.calls,
        "microseconds": {option: round(median * 1e6, 1) for option, median in medians.items()},
        "over_versions": {
            option: asdict(paired_ratio(found, times[VERSIONS])) for option, found in times.items()
        },
        "rounds": len(times[VERSIONS]),
    }


def main(arguments: list[str] | None = None) -> None:
    """Times all sizes and numbers of rows, prints a line for each, and writes the document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--seconds", type=float, default=20.0, help="per layer and number of rows")
    add_report_options(parser)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows = []
    for size in options.sizes:
        for count in options.rows:
            rows.append(measured(size, count, options.seconds))
            print(rows[-1], file=sys.stderr)
    settings = {"sizes": options.sizes, "rows": options.rows, "seconds": options.seconds}
    emit(report("watched_weights", settings, rows, {}), options.json, options.output)


if __name__ == "__main__":
    main()
