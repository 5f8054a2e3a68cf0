"""A child of the GPU check whose checks go wrong in every way there is."""

import argparse
import os
import signal
import time

from benchmarks.gpu_check.checks import Check, CheckOutcome, passed, skipped
from benchmarks.gpu_check.child import ask
from tuner.core.errors import UsageError

HANG_LIMIT_S = 0.5
LONG_S = 1000.0  # no test waits for it


def refuse() -> CheckOutcome:
    raise UsageError("words: found none, allowed some")


def crash() -> CheckOutcome:
    os.kill(os.getpid(), signal.SIGSEGV)
    return passed()


def defect() -> CheckOutcome:
    raise LookupError("a defect of ours")


def hang() -> CheckOutcome:
    time.sleep(LONG_S)
    return passed()


CHECKS = {
    "mixed": (
        Check("right", lambda: passed("fine", number=7)),
        Check("refused", refuse),
        Check("crashing", crash),
        Check("broken", defect),
        Check("hanging", hang, HANG_LIMIT_S),
        Check("last", lambda: skipped("no reason")),
    ),
    "slow": (Check("right", passed), Check("long", hang, LONG_S), Check("late", passed)),
    "right": (Check("right", passed),),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checks", choices=[*CHECKS, "none", "nothing"])
    parser.add_argument("--start", type=int)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--pipe", type=int)
    options, _ = parser.parse_known_args()
    if options.checks == "none":
        raise SystemExit("no checks here")
    if options.checks == "nothing":
        time.sleep(LONG_S)
    with os.fdopen(options.pipe, "w") as pipe:
        ask(CHECKS[options.checks], options.start, options.limit, pipe)


if __name__ == "__main__":
    main()
