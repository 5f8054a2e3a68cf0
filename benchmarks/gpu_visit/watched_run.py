"""One program of the folder, run once and compared with float64: what compute-sanitizer watches."""

import argparse
import sys
from pathlib import Path

from benchmarks.gpu_check.device_runs import fault_of
from benchmarks.gpu_check.device_under_test import DEVICES, Bed
from benchmarks.gpu_visit.code_folder import SANITIZED, CodeFolder
from tuner.core.errors import TunerError


def main() -> None:
    """Exits with 0 where every element is right, else with the reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--code", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--device", choices=DEVICES, required=True)
    parser.add_argument("--chip", required=True)
    options = parser.parse_args()
    try:
        code = CodeFolder.read(options.code)
        entry = code.named(SANITIZED, options.name)
        assert entry.problem is not None
        device = Bed(options.device, options.chip).open()
        sys.exit(fault_of(device, entry.problem, code.program(entry)) or 0)
    except TunerError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
