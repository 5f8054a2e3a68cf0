"""Fuzzes host programs: on the simulated GPU against the same program as loops on the host.

    python -m benchmarks.fuzz_host_programs --count 500

Each program runs in one form and one order of ready device work, both random. Failures are different numbers,
work without an order, leaks, double frees, and ops that no pass converts.
"""

import argparse
import itertools
import sys
import time

import hypothesis
from hypothesis import strategies as st

from benchmarks.fuzzing.host_program_writer import ProgramFeatures
from benchmarks.fuzzing.host_programs import RandomProgram, host_programs
from benchmarks.fuzzing.program_check import check_program
from tuner.core.gpu import STREAM_ORDERS
from tuner.programs.request import FORMS

FEATURES = ProgramFeatures(explicit=True)


def main() -> None:
    """Prints how many programs were right; prints the first failure and exits with 1."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=500, help="programs to run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    began_s = time.monotonic()
    numbers = itertools.count()

    @hypothesis.seed(options.seed)
    @hypothesis.settings(
        max_examples=options.count,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(host_programs(FEATURES), st.sampled_from(FORMS), st.sampled_from(STREAM_ORDERS))
    def run(program: RandomProgram, form: str, order: str) -> None:
        next(numbers)
        check_program(program, form, order)

    try:
        run()
    except AssertionError as error:
        print(error)
        sys.exit(1)
    print(f"{next(numbers)} programs right in {time.monotonic() - began_s:.0f} s")


if __name__ == "__main__":
    main()
