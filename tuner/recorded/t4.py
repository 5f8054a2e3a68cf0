"""The words of T4, the results format that autotuners share, and the part of it that is our own.

Schema: https://github.com/AutoTuningAssociation/autotuning_methodology, schemas/T4.json. What T4 has no word
for stands under the key ``tuner``, of the file and of each result; other programs pass over it.
"""

from tuner.core.errors import Failure, Stage

SCHEMA_VERSION = "1.1.0"
OWN = "tuner"
OWN_VERSION = 1
STRATEGY = "strategy"  # beside the knobs in our configurations
TIME = "time"  # the measurement and the objective
UNIT = "seconds"  # that we write: a float comes back bit by bit
CORRECT = "correct"
FORBIDDEN = "constraints"
TIMEOUT = "timeout"

UNITS_S = {
    **dict.fromkeys(("nanoseconds", "ns"), 1e-9),
    **dict.fromkeys(("microseconds", "us"), 1e-6),
    # the second is how files of the benchmark hub spell it; none at all is Kernel Tuner's
    **dict.fromkeys(("milliseconds", "miliseconds", "ms", ""), 1e-3),
    **dict.fromkeys(("seconds", "s"), 1.0),
}
INVALIDITY = {
    Stage.BIND: "compile",
    Stage.COMPILE: "compile",
    Stage.RESOURCES: "compile",
    Stage.LOAD: "runtime",
    Stage.RUN: "runtime",
    Stage.VERIFY: "correctness",
    Stage.MEASURE: "runtime",
}
STAGES = {  # of results that say no more
    "compile": Stage.COMPILE,
    "runtime": Stage.RUN,
    "correctness": Stage.VERIFY,
    TIMEOUT: Stage.RUN,
}


def invalidity_of(failure: Failure) -> str:
    """Returns T4's word for a failure."""
    return TIMEOUT if failure.reason.startswith("timed out") else INVALIDITY[failure.stage]
