"""The terms of T4, the results format that autotuners share, and this tuner's extension of it.

Schema: https://github.com/AutoTuningAssociation/autotuning_methodology, schemas/T4.json. What T4 cannot
express is under the key ``tuner``, of the file and of each result; other programs ignore it.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any

from tuner.core.dataclass_json import Only, whole
from tuner.core.documents import PROBLEM
from tuner.core.errors import Failure, Stage
from tuner.core.machine import Compiler, Machine
from tuner.core.problem import Problem
from tuner.space.recorded.kernel_tuner import is_time

SCHEMA_VERSION = "1.1.0"
OWN = "tuner"
TUNER_VERSION = 1
STRATEGY = "strategy"  # in addition to the knobs, in configurations of this tuner
TIME = "time"  # name of the measurement and of the objective
UNIT = "seconds"  # written by this tuner: floats are read back exactly
CORRECT = "correct"
FORBIDDEN = "constraints"
TIMEOUT = "timeout"

UNITS_S = {
    **dict.fromkeys(("nanoseconds", "ns"), 1e-9),
    **dict.fromkeys(("microseconds", "us"), 1e-6),
    # the second spelling occurs in files of the benchmark hub; "" in those of Kernel Tuner
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
STAGES = {  # of results without a stage
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
    """What a T4 file cannot express of a measurement, stored under the key ``tuner``.

    ``interval_s`` is the 95 % interval of the median, ``cold_median_s`` the median with a flushed cache.
    """

    interval_s: Interval
    inner_calls: AtLeastOne
    is_complete: bool
    cold_median_s: Seconds | None


@dataclass(frozen=True, kw_only=True)
class TunerBaseline:
    """The baseline library and its time, as a T4 file stores it under the key ``tuner``."""

    name: str
    threads: int
    is_interleaved: bool = False
    median_s: Seconds
    interval_s: Interval
    inner_calls: AtLeastOne
    samples_s: Samples


@dataclass(frozen=True, kw_only=True)
class TunerMetadata:
    """What T4 cannot express of a file's metadata, stored under the key ``tuner``."""

    version: int
    problem: Problem = field(metadata=PROBLEM)
    target: str  # TargetName.text
    threads: AtLeastOne
    machine: Machine
    compiler: Compiler
    knobs: dict[str, Any]  # strategy -> knob -> choices
    constraints: tuple[str, ...]  # constraints and preferences
    baseline: TunerBaseline | None = None


def invalidity_of(failure: Failure) -> str:
    """Returns T4's term for a failure: "compile", "runtime", "correctness" or "timeout"."""
    return TIMEOUT if failure.reason.startswith("timed out") else INVALIDITY[failure.stage]
