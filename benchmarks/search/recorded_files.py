"""Seconds to read recorded spaces: ``python -m benchmarks.search.recorded_files FILE... [--json]``."""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results_file import add_report_options, emit, report
from tuner.space.recorded.reading import read_recorded


def main() -> None:
    """Reads each file once; prints its contents in numbers and the seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    add_report_options(parser)
    options = parser.parse_args()
    rows = [_read(file) for file in options.files]
    if not options.json:
        for row in rows:
            print(f"{row['file']}: {row['rows']} rows, {row['forbidden']} forbidden, {row['read_s']:.2f} s")
    settings = {"files": [file.name for file in options.files]}
    summary = {"slowest_s": max(row["read_s"] for row in rows)}
    emit(report("recorded", settings, rows, summary), options.json, options.output)


def _read(file: Path) -> dict[str, Any]:
    start = time.perf_counter()
    space = read_recorded(file)
    read_s = time.perf_counter() - start
    return {
        "file": file.name,
        "rows": space.rows,
        "forbidden": space.forbidden,
        "failed": int(np.count_nonzero(np.isnan(space.times_s))),
        "bytes": file.stat().st_size,
        "read_s": read_s,
    }


if __name__ == "__main__":
    main()
