"""The words of T4, the results format that autotuners share, and the part of it that is our own.

Schema: https://github.com/AutoTuningAssociation/autotuning_methodology, schemas/T4.json. What T4 has no word
for stands under the key ``tuner``, of the file and of each result; other programs pass over it.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any

from tuner.core.dataclass_json import Only, whole
from tuner.core.documents import PROBLEM
from tuner.core.errors import Failure, Stage
from tuner.core.machine import Compiler, Machine
from tuner.core.problem import Problem
from tuner.recorded.kernel_tuner import is_time

SCHEMA_VERSION = "1.1.0"
OWN = "tuner"
TUNER_VERSION = 1
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

AtLeastOne = Annotated[int, whole(1)]
Seconds = Annotated[float, Only("a time in seconds", is_time)]
Samples = Annotated[
    tuple[float, ...],
    Only("times", lambda found: isinstance(found, list) and bool(found) and all(map(is_time, found))),
]


def _is_interval(found: Any) -> bool:
    is_pair = isinstance(found, list) and len(found) == 2 and all(map(is_time, found))
    return is_pair and found[0] <= found[1]


Interval = Annotated[tuple[float, float], Only("two times, the lower first", _is_interval)]


@dataclass(frozen=True)
class TunerTime:
    """What T4 has no word for of a result with a time."""

    interval_s: Interval
    inner_calls: AtLeastOne
    is_complete: bool
    cold_median_s: Seconds | None


@dataclass(frozen=True, kw_only=True)
class TunerBaseline:
    """The baseline of the runs."""

    name: str
    threads: int
    is_interleaved: bool = False
    median_s: Seconds
    interval_s: Interval
    inner_calls: AtLeastOne
    samples_s: Samples


@dataclass(frozen=True, kw_only=True)
class TunerMetadata:
    """What T4 has no word for of all runs of a file."""

    version: int
    problem: Problem = field(metadata=PROBLEM)
    target: str  # TargetName.text
    threads: AtLeastOne
    machine: Machine
    compiler: Compiler
    knobs: dict[str, Any]  # strategy -> knob -> choices
    constraints: tuple[str, ...]  # with the preferences
    baseline: TunerBaseline | None = None


def invalidity_of(failure: Failure) -> str:
    """Returns T4's word for a failure."""
    return TIMEOUT if failure.reason.startswith("timed out") else INVALIDITY[failure.stage]
