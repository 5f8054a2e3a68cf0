"""Writes trials of one problem on one machine as a T4 file."""

import gzip
import json
from dataclasses import dataclass
from typing import Any

from tuner.core.dataclass_json import encode
from tuner.core.errors import Failure, UsageError
from tuner.core.record import Measurement, Record
from tuner.core.runs import Baseline, Run, StoredTrial
from tuner.core.target_name import TargetName
from tuner.space.recorded.t4 import (
    CORRECT,
    OWN,
    SCHEMA_VERSION,
    STRATEGY,
    TIME,
    TUNER_VERSION,
    UNIT,
    TunerBaseline,
    TunerMetadata,
    TunerTime,
    invalidity_of,
)
from tuner.space.search_space import SearchSpace

COMPILING = ("bind", "compile", "transform", "lower", "assemble")  # stages that T4 counts as compilation
Document = dict[str, Any]


@dataclass(frozen=True)
class Recording:
    """What is written to a T4 file: comparable trials with their runs and search spaces.

    Raises UsageError without runs, for replays, and for runs of different problems, targets, threads,
    machines or compilers.
    """

    runs: tuple[Run, ...]  # of the trials
    trials: tuple[StoredTrial, ...]
    spaces: tuple[SearchSpace, ...] = ()  # order and choices of the knobs, and constraints on them

    def __post_init__(self) -> None:
        replayed = next((run for run in self.runs if not run.settings.target.has_machine), None)
        if replayed is not None:
            raise UsageError(f"t4: run {replayed.id}: is a replay: only runs that measured are exported")
        keys = {_key(run) for run in self.runs}
        if len(keys) != 1:
            found = f"trials of {len(keys)} problems, targets, machines or compilers" if keys else "no trials"
            raise UsageError(f"t4: found {found}, allowed one: choose by --run, --shape, --target, --machine")


def t4_bytes(recording: Recording, is_compressed: bool = False) -> bytes:
    """Returns the content of a T4 file, as JSON in UTF-8; ``is_compressed``: by gzip.

    Equal recordings give equal bytes.
    """
    text = json.dumps(t4_document(recording), indent=None, separators=(",", ":"), allow_nan=False)
    content = text.encode() + b"\n"
    return gzip.compress(content, mtime=0) if is_compressed else content


def t4_document(recording: Recording) -> Document:
    """Returns the JSON document of a T4 file: one result per trial, times in seconds."""
    codes: dict[str, int] = {}
    return {
        "schema_version": SCHEMA_VERSION,
        "metadata": _metadata(recording.runs[0], recording.spaces, recording.trials),
        "results": [_result(trial, codes) for trial in recording.trials],
    }


def _metadata(run: Run, spaces: tuple[SearchSpace, ...], trials: tuple[StoredTrial, ...]) -> Document:
    own = TunerMetadata(
        version=TUNER_VERSION,
        problem=run.settings.problem,
        target=run.settings.target.text,
        threads=run.settings.threads,
        machine=run.machine,
        compiler=run.compiler,
        knobs=_knobs(spaces, trials),
        constraints=tuple(
            each.full_text for space in spaces for each in (*space.constraints, *space.preferences)
        ),
        baseline=None if run.baseline is None else _baseline(run.baseline),
    )
    return {
        "device": run.machine.name,
        "autotuner": "mlir-tuner",
        "autotuner_version": run.tuner_version,
        "timestamp": run.created.isoformat(),
        "timeunit": UNIT,
        OWN: encode(own),
    }


def _knobs(
    spaces: tuple[SearchSpace, ...], trials: tuple[StoredTrial, ...]
) -> dict[str, dict[str, list[Any]]]:
    """Returns strategy -> knob -> choices: of the spaces, or without spaces the values that were tried."""
    if spaces:
        return {space.strategy: {knob.name: list(knob.choices) for knob in space.knobs} for space in spaces}
    met: dict[str, dict[str, set[Any]]] = {}
    for trial in trials:
        strategy = met.setdefault(trial.record.candidate.strategy, {})
        for name, value in trial.record.candidate.choices:
            strategy.setdefault(name, set()).add(value)
    return {name: {knob: sorted(values) for knob, values in knobs.items()} for name, knobs in met.items()}


def _result(trial: StoredTrial, codes: dict[str, int]) -> Document:
    record = trial.record
    failure = record.outcome if isinstance(record.outcome, Failure) else None
    is_wrong = failure is not None
    return {
        "timestamp": trial.created.isoformat(),
        "configuration": {STRATEGY: record.candidate.strategy, **dict(record.candidate.choices)},
        "objectives": [TIME],
        "times": _times(record),
        "invalidity": CORRECT if failure is None else invalidity_of(failure),
        "correctness": int(not is_wrong),
        "measurements": _measurements(record),
        OWN: {"trial": trial.number, **_code(record, codes), **_own(record)},
    }


def _times(record: Record) -> Document:
    stages = dict(record.stage_s)
    times: Document = {"compilation_time": sum(stages.get(name, 0.0) for name in COMPILING)}
    if "verify" in stages:
        times["validation"] = stages["verify"]
    if isinstance(record.outcome, Measurement):
        times["runtimes"] = list(record.outcome.samples_s)
    return times


def _measurements(record: Record) -> list[Document]:
    if record.median_s is None:
        return []
    return [{"name": TIME, "value": record.median_s, "unit": UNIT}]


def _own(record: Record) -> Document:
    """Returns the part of a result that T4 cannot express."""
    if isinstance(record.outcome, Failure):
        return {**encode(record.outcome)}
    own: Document = {"verdict": record.correct_verdict and encode(record.correct_verdict)}
    if isinstance(record.outcome, Measurement):
        time = record.outcome
        own |= encode(TunerTime(time.interval_s, time.inner_calls, time.is_complete, time.cold_median_s))
    return own


def _code(record: Record, codes: dict[str, int]) -> Document:
    """Returns a number that trials of equal machine code share; {} for a trial that was not compiled."""
    if not record.artifact_sha256:
        return {}
    return {"code": codes.setdefault(record.artifact_sha256, len(codes))}


def _baseline(baseline: Baseline) -> TunerBaseline:
    time = baseline.measurement
    return TunerBaseline(
        name=baseline.name,
        threads=baseline.threads,
        is_interleaved=baseline.is_interleaved,
        median_s=time.median_s,
        interval_s=time.interval_s,
        inner_calls=time.inner_calls,
        samples_s=time.samples_s,
    )


def _key(run: Run) -> tuple[str, TargetName, int, str, str]:
    settings = run.settings
    return (
        settings.problem.key,
        settings.target,
        settings.threads,
        run.machine.name,
        run.compiler.fingerprint,
    )
