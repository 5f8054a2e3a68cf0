"""Reads a recording of tuning results in T4, a JSON format of autotuners, as a search space with outcomes.

Schema: https://github.com/AutoTuningAssociation/autotuning_methodology, schemas/T4.json. What T4 cannot
express is under the key ``tuner``, of the file and of each result. Files of this tuner, which
``benchmarks.t4_writer`` writes, are restored completely, others as far as T4 says.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.gpu import chip_of
from tuner.core.machine import PTX, Machine, named_in_full
from tuner.core.problem import Problem
from tuner.core.problem_documents import PROBLEM
from tuner.core.records import Measurement, Verdict
from tuner.core.runs import Baseline, Compiler
from tuner.core.serialization import Only, decode, known_part, printable, quoted, whole
from tuner.space.recorded.recording import (
    UNTIMED,
    Points,
    Raw,
    RecordedFile,
    RecordedSpace,
    RecordedTime,
    feasible_set_of,
    is_time,
    open_recorded,
    printable_text,
    samples_of,
)

UNKNOWN = "unknown device"
Result = dict[str, Any]
ALLOWED = "allowed T4"
OWN = "tuner"
TUNER_VERSION = 1
STRATEGY = "strategy"  # key of a configuration next to its knobs, in files of this tuner
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
    Only("times", lambda value: isinstance(value, list) and bool(value) and all(map(is_time, value))),
]


def _is_interval(value: Any) -> bool:
    is_pair = isinstance(value, list) and len(value) == 2 and all(map(is_time, value))
    return is_pair and value[0] <= value[1]


Interval = Annotated[tuple[float, float], Only("two times, the lower first", _is_interval)]


@dataclass(frozen=True)
class TunerTime:
    """The parts of a measurement that T4 cannot express, stored under the key ``tuner`` of a result."""

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
    """The parts of a file's metadata that T4 cannot express, stored under the key ``tuner``."""

    version: int
    problem: Problem = field(metadata=PROBLEM)
    target: str  # TargetName.text
    threads: AtLeastOne
    machine: Machine
    compiler: Compiler
    knobs: dict[str, Any]  # strategy -> knob -> choices
    constraints: tuple[str, ...]  # constraints and preferences
    baseline: TunerBaseline | None = None


def t4_space(file: RecordedFile) -> RecordedSpace:
    """Returns the recorded space of a T4 file; files of this tuner are restored completely.

    Raises UsageError for a file without tried configurations or with an unknown unit of time; KeyError,
    TypeError and the like for a document of another form, which ``read_recorded`` reports as UsageError.
    """
    document = file.document
    metadata = document.get("metadata") or {}
    own = _own(metadata[OWN]) if metadata.get(OWN) else None
    results: list[Result] = document["results"]
    tried = [result for result in results if result["invalidity"] != FORBIDDEN]
    if not tried:
        raise UsageError("no point was tried")
    unit = metadata.get("timeunit", "")
    if not isinstance(unit, str) or unit not in UNITS_S:
        raise UsageError(f"timeunit: found {quoted(unit)}, allowed {', '.join(filter(None, UNITS_S))}")
    # ``entries``: indices into ``tried``
    feasible, entries = feasible_set_of(_points_by_strategy(tried, own.knobs if own else {}, file.name))
    chosen = [tried[entry] for entry in entries]  # by row of the feasible set
    return RecordedSpace(
        name=file.name,
        sha256=file.sha256,
        feasible=feasible,
        outcomes=tuple(_outcome(result, UNITS_S[unit]) for result in chosen),
        # equal numbers: equal machine code; without a record of it each row has its own, negative number
        codes=tuple(
            decode(int, (result.get(OWN) or {}).get("code", -1 - row), f"{OWN}.code")
            for row, result in enumerate(chosen)
        ),
        machine=_machine(own.machine) if own else _foreign_machine(str(metadata.get("device") or UNKNOWN)),
        compiler=_compiler(metadata, own),
        problem=own.problem if own else None,
        threads=own.threads if own else 1,
        baseline=_baseline(own.baseline) if own and own.baseline else None,
        constraints=own.constraints if own else (),
        forbidden=len(results) - len(tried),
    )


def _own(stored: Any) -> TunerMetadata:
    if stored["version"] != TUNER_VERSION:
        raise UsageError(f"{OWN}.version: found {quoted(stored['version'])}, allowed {TUNER_VERSION}")
    # a key of four shipped recordings, which are not rewritten: stored replays refer to their hash
    if "vendor" in stored:
        stored = {**stored, "baseline": stored["vendor"]}
    return decode(TunerMetadata, known_part(TunerMetadata, stored, OWN), OWN)


def _points_by_strategy(
    tried: list[Result], knobs: dict[str, dict[str, list[Raw]]], name: str
) -> tuple[Points, ...]:
    """Returns the configurations by strategy.

    ``knobs``: strategy -> knob -> choices, of a file that tuner wrote; {}: of another autotuner, all of whose
    configurations get one strategy, named ``name``.
    """
    entries: dict[str, list[int]] = {}
    for index, result in enumerate(tried):
        strategy = str(result["configuration"][STRATEGY]) if knobs else name
        entries.setdefault(strategy, []).append(index)
    ordered = [strategy for strategy in (*knobs, *entries) if strategy in entries]
    return tuple(
        _points(strategy, tried, entries[strategy], knobs.get(strategy, {}))
        for strategy in dict.fromkeys(ordered)
    )


def _points(strategy: str, tried: list[Result], entries: list[int], listed: dict[str, list[Raw]]) -> Points:
    first = tried[entries[0]]["configuration"]
    names = tuple(listed or first)
    configurations = [tried[entry]["configuration"] for entry in entries]
    return Points(
        strategy=strategy,
        names=names,
        listed=tuple(tuple(listed.get(name, ())) for name in names),
        values=[tuple(configuration[name] for name in names) for configuration in configurations],
        entries=entries,
    )


def _outcome(result: Result, unit_s: float) -> RecordedTime | Failure:
    own = result.get(OWN) or {}
    if result["invalidity"] != CORRECT:
        if "stage" in own:
            failure = decode(Failure, known_part(Failure, own, OWN), OWN)
            return replace(failure, reason=printable_text(failure.reason))
        if result["invalidity"] not in tuple(STAGES):
            allowed = ", ".join((CORRECT, FORBIDDEN, *STAGES))
            raise UsageError(f"invalidity: found {quoted(result['invalidity'])}, allowed {allowed}")
        return Failure(STAGES[result["invalidity"]], f"recorded as {result['invalidity']!r}")
    time_s = _time_s(result, unit_s)
    if time_s is None:
        return UNTIMED
    samples_s = samples_of(result["times"].get("runtimes") or [], unit_s)
    measurement = None
    if "interval_s" in own and samples_s:
        time = decode(TunerTime, known_part(TunerTime, own, OWN), OWN)
        measurement = Measurement(
            samples_s, time.inner_calls, time_s, time.interval_s, time.is_complete, time.cold_median_s
        )
    return RecordedTime(time_s, samples_s, measurement, _verdict(own.get("verdict")))


def _time_s(result: Result, unit_s: float) -> float | None:
    """Returns the measurement named "time", else the first objective, in seconds; None for no valid time.

    ``unit_s``: seconds of the file's unit, for a measurement without one. Raises UsageError if the
    measurement's unit is not one of time.
    """
    measured = {measurement["name"]: measurement for measurement in result.get("measurements") or ()}
    name = TIME if TIME in measured else next(iter(result.get("objectives") or ()), TIME)
    if name not in measured:
        return None
    value = measured[name]["value"]
    unit = measured[name].get("unit") or ""
    if unit not in UNITS_S or (name != TIME and not unit):
        allowed = ", ".join(filter(None, UNITS_S))
        raise UsageError(f"objective {name!r}: found unit {quoted(unit)}, allowed a time: {allowed}")
    if is_time(value):
        return value * (UNITS_S[unit] if unit else unit_s)
    return None


def _foreign_machine(device: str) -> Machine:
    """Returns a machine of which only the name is known: all its sizes are 0."""
    name = printable(device)
    return Machine(name, name, "none", False, 0, 0, 0, 0, 0, 0)


def _machine(machine: Machine) -> Machine:
    if machine.isa == PTX:
        chip_of(machine.chip)  # raises UsageError
    machine = replace(machine, name=printable(machine.name), processor=printable(machine.processor))
    return named_in_full(machine)


def _compiler(metadata: dict[str, Any], own: TunerMetadata | None) -> Compiler:
    if own is None:
        return Compiler(f"not MLIR: {metadata.get('autotuner') or 'another tuner'}", (), "")
    return replace(own.compiler, mlir=printable(own.compiler.mlir))


def _baseline(own: TunerBaseline) -> Baseline:
    time = Measurement(own.samples_s, own.inner_calls, own.median_s, own.interval_s)
    return Baseline(printable(own.name), own.threads, time, own.is_interleaved)


def _verdict(stored: dict[str, Any] | None) -> Verdict | None:
    if stored is None:
        return None
    verdict = decode(Verdict, stored, f"{OWN}.verdict")
    return replace(verdict, notes=tuple(map(printable, verdict.notes)))


def read_recorded(path: Path) -> RecordedSpace:
    """Reads a T4 file, compressed by gzip or not, as a recorded space.

    Raises UsageError, beginning with the path, for any other file.
    """
    file = open_recorded(path)
    try:
        if isinstance(file.document.get("results"), list):
            return t4_space(file)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    except KeyError as error:
        key = quoted(error.args[0])
        raise UsageError(f"{path}: found no {key} where its format has one, {ALLOWED}") from error
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UsageError(f"{path}: found another form ({quoted(str(error))}), {ALLOWED}") from error
    keys = quoted(", ".join(sorted(file.document)[:8])) if file.document else "none"
    raise UsageError(f"{path}: found the keys {keys}, allowed 'results' (T4)")
