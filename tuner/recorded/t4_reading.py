"""T4 files -> recorded spaces: what we wrote comes back whole, of others' what T4 has words for."""

from dataclasses import replace
from typing import Any

from tuner.core.chips import chip_of
from tuner.core.dataclass_json import LARGEST_INTEGER, decode, quoted
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.machine import Compiler, Machine
from tuner.core.problem import Problem, split_extents
from tuner.core.record import Measurement, Verdict
from tuner.core.runs import Baseline
from tuner.recorded.file import RecordedFile, printable
from tuner.recorded.kernel_tuner import UNTIMED, foreign_machine, is_time, samples_of
from tuner.recorded.points import Points, Raw, arranged
from tuner.recorded.space import RecordedSpace, RecordedTime
from tuner.recorded.t4 import CORRECT, FORBIDDEN, OWN, OWN_VERSION, STAGES, STRATEGY, TIME, UNITS_S

Result = dict[str, Any]
Texts = tuple[str, ...]
Sizes = tuple[int, ...]


def is_t4(document: dict[str, Any]) -> bool:
    """Tells whether a document is of the format."""
    return isinstance(document.get("results"), list)


def t4_space(file: RecordedFile) -> RecordedSpace:
    """Reads a file. Raises UsageError, KeyError, TypeError or ValueError for what is none."""
    document = file.document
    metadata = document.get("metadata") or {}
    own = metadata.get(OWN) or {}
    if own and own["version"] != OWN_VERSION:
        raise UsageError(f"{OWN}.version: found {quoted(own['version'])}, allowed {OWN_VERSION}")
    results: list[Result] = document["results"]
    tried = [one for one in results if one["invalidity"] != FORBIDDEN]
    if not tried:
        raise UsageError("found no point that was tried, allowed at least one")
    unit_s = _unit_s(metadata.get("timeunit", ""))
    feasible, entries = arranged(_groups(tried, own.get("knobs") or {}, file.name))
    chosen = [tried[entry] for entry in entries]
    return RecordedSpace(
        name=file.name,
        sha256=file.sha256,
        feasible=feasible,
        outcomes=tuple(_outcome(one, unit_s) for one in chosen),
        codes=tuple(_code(one, -1 - row) for row, one in enumerate(chosen)),
        machine=_machine(metadata, own),
        compiler=_compiler(metadata, own),
        problem=_problem(own["problem"]) if own else None,
        threads=_at_least_one("threads", own.get("threads", 1)),
        baseline=_baseline(own.get("baseline", own.get("vendor"))),  # or its earlier name
        constraints=decode(Texts, own.get("constraints") or [], f"{OWN}.constraints"),
        forbidden=len(results) - len(tried),
    )


def _groups(tried: list[Result], knobs: dict[str, dict[str, list[Raw]]], name: str) -> tuple[Points, ...]:
    """Returns the points by strategy; a file that does not tell them apart has one, named by the file."""
    entries: dict[str, list[int]] = {}
    for number, one in enumerate(tried):
        strategy = str(one["configuration"][STRATEGY]) if knobs else name
        entries.setdefault(strategy, []).append(number)
    ordered = [strategy for strategy in (*knobs, *entries) if strategy in entries]
    return tuple(_points(one, tried, entries[one], knobs.get(one, {})) for one in dict.fromkeys(ordered))


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


def _outcome(one: Result, unit_s: float) -> RecordedTime | Failure:
    own = one.get(OWN) or {}
    if one["invalidity"] != CORRECT:
        if "stage" in own:
            reason = decode(str, own["reason"], f"{OWN}.reason")
            return Failure(decode(Stage, own["stage"], f"{OWN}.stage"), printable(reason))
        return Failure(_stage(one["invalidity"]), f"recorded as {one['invalidity']!r}")
    time_s = _time_s(one, unit_s)
    if time_s is None:
        return UNTIMED
    samples_s = samples_of(one["times"].get("runtimes") or [], unit_s)
    measurement = _measurement(own, time_s, samples_s) if "interval_s" in own and samples_s else None
    return RecordedTime(time_s, samples_s, measurement, _verdict(own.get("verdict")))


def _stage(invalidity: object) -> Stage:
    if invalidity not in (words := tuple(STAGES)):
        allowed = ", ".join((CORRECT, FORBIDDEN, *words))
        raise UsageError(f"invalidity: found {quoted(invalidity)}, allowed {allowed}")
    return STAGES[str(invalidity)]


def _measurement(own: dict[str, Any], median_s: float, samples_s: tuple[float, ...]) -> Measurement:
    cold_s = own["cold_median_s"]
    return Measurement(
        samples_s,
        _at_least_one("inner_calls", own["inner_calls"]),
        median_s,
        _interval("interval_s", own["interval_s"]),
        decode(bool, own["is_complete"], f"{OWN}.is_complete"),
        None if cold_s is None else _time("cold_median_s", cold_s),
    )


def _interval(name: str, given: object) -> tuple[float, float]:
    if isinstance(given, list) and len(given) == 2 and all(map(is_time, given)) and given[0] <= given[1]:
        return float(given[0]), float(given[1])
    raise UsageError(f"{OWN}.{name}: found {quoted(given)}, allowed two times, the lower first")


def _time(name: str, given: object) -> float:
    if not is_time(given):
        raise UsageError(f"{OWN}.{name}: found {quoted(given)}, allowed a time in seconds")
    return float(given)


def _time_s(one: Result, unit_s: float) -> float | None:
    """Returns the measurement named time, else that of the first objective; None for no number."""
    measured = {each["name"]: each for each in one.get("measurements") or ()}
    name = TIME if TIME in measured else next(iter(one.get("objectives") or ()), TIME)
    if name not in measured:
        return None
    value, unit = measured[name]["value"], measured[name].get("unit") or ""
    if unit not in UNITS_S or (name != TIME and not unit):
        allowed = ", ".join(filter(None, UNITS_S))
        raise UsageError(f"objective {name!r}: found unit {quoted(unit)}, allowed a time: {allowed}")
    return value * (UNITS_S[unit] if unit else unit_s) if is_time(value) else None


def _unit_s(word: str) -> float:
    if not isinstance(word, str) or word not in UNITS_S:
        raise UsageError(f"timeunit: found {quoted(word)}, allowed {', '.join(filter(None, UNITS_S))}")
    return UNITS_S[word]


def _at_least_one(name: str, given: object) -> int:
    if type(given) is not int or not 1 <= given <= LARGEST_INTEGER:
        raise UsageError(f"{OWN}.{name}: found {quoted(given)}, allowed 1 or more")
    return given


def _code(one: Result, otherwise: int) -> int:
    return decode(int, (one.get(OWN) or {}).get("code", otherwise), f"{OWN}.code")


def _machine(metadata: dict[str, Any], own: dict[str, Any]) -> Machine:
    if own:
        machine = decode(Machine, own["machine"], f"{OWN}.machine")
        if machine.chip:
            chip_of(machine.chip)  # raises UsageError
        return replace(machine, name=printable(machine.name), processor=printable(machine.processor))
    return foreign_machine(str(metadata.get("device") or "unknown device"))


def _compiler(metadata: dict[str, Any], own: dict[str, Any]) -> Compiler:
    if not own:
        autotuner = metadata.get("autotuner") or "another tuner"
        return Compiler(f"not MLIR: {autotuner}", (), "")
    compiler = decode(Compiler, own["compiler"], f"{OWN}.compiler")
    return replace(compiler, mlir=printable(compiler.mlir))


def _problem(given: dict[str, Any]) -> Problem:
    batch, sizes = split_extents(given["op"], decode(Sizes, given["shape"], f"{OWN}.problem.shape"))
    words = (given["dtype"], given["layout"], given["epilogue"], given["output"])
    return Problem(given["op"], sizes, *words, batch)


def _baseline(given: dict[str, Any] | None) -> Baseline | None:
    if given is None:
        return None
    samples_s = samples_of(given["samples_s"], 1.0)
    if not samples_s:
        raise UsageError(f"{OWN}.baseline.samples_s: found {quoted(given['samples_s'])}, allowed times")
    time = Measurement(
        samples_s,
        _at_least_one("baseline.inner_calls", given["inner_calls"]),
        _time("baseline.median_s", given["median_s"]),
        _interval("baseline.interval_s", given["interval_s"]),
    )
    name = decode(str, given["name"], f"{OWN}.baseline.name")
    threads = decode(int, given["threads"], f"{OWN}.baseline.threads")
    is_interleaved = decode(bool, given.get("is_interleaved", False), f"{OWN}.baseline.is_interleaved")
    return Baseline(printable(name), threads, time, is_interleaved)


def _verdict(given: dict[str, Any] | None) -> Verdict | None:
    if given is None:
        return None
    verdict = decode(Verdict, given, f"{OWN}.verdict")
    return replace(verdict, notes=tuple(map(printable, verdict.notes)))
