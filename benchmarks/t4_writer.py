"""Writes T4, a JSON format for results of autotuners.

Schema: https://github.com/AutoTuningAssociation/autotuning_methodology, schemas/T4.json. What T4 cannot
express is under the key ``tuner``, of the file and of each result; other programs ignore it.
"""

import gzip
import json
from dataclasses import dataclass
from typing import Any

from tuner.core.candidate import TargetName
from tuner.core.errors import TIMED_OUT, Failure, Stage, UsageError
from tuner.core.records import Measurement, Record
from tuner.core.runs import Baseline, Run
from tuner.core.serialization import encode
from tuner.core.trials import StoredTrial
from tuner.space.recorded.reading import (
    CORRECT,
    OWN,
    STRATEGY,
    TIME,
    TIMEOUT,
    TUNER_VERSION,
    UNIT,
    TunerBaseline,
    TunerMetadata,
    TunerTime,
)
from tuner.space.search_space import SearchSpace

SCHEMA_VERSION = "1.1.0"
INVALIDITY = {
    Stage.BIND: "compile",
    Stage.COMPILE: "compile",
    Stage.RESOURCES: "compile",
    Stage.LOAD: "runtime",
    Stage.RUN: "runtime",
    Stage.VERIFY: "correctness",
    Stage.MEASURE: "runtime",
}
COMPILING = ("bind", "compile", "transform", "lower", "assemble")  # stages that T4 counts as compilation
Document = dict[str, Any]


def invalidity_of(failure: Failure) -> str:
    """Returns T4's term for a failure: "compile", "runtime", "correctness" or "timeout"."""
    if failure.reason.startswith(TIMED_OUT):
        return TIMEOUT
    return INVALIDITY[failure.stage]


@dataclass(frozen=True)
class Recording:
    """The content of a T4 file to write: comparable trials with their runs and search spaces.

    Raises UsageError without runs, for replays, and for runs that are not comparable.
    """

    runs: tuple[Run, ...]  # of the trials
    trials: tuple[StoredTrial, ...]
    spaces: tuple[SearchSpace, ...] = ()  # order and choices of the knobs, and constraints on them

    def __post_init__(self) -> None:
        replayed = next((run for run in self.runs if not run.settings.target.has_machine), None)
        if replayed is not None:
            raise UsageError(f"t4: run {replayed.id}: is a replay: only runs that measured are exported")
        keys = set(map(_key, self.runs))
        if len(keys) != 1:
            if keys:
                what = f"trials of {len(keys)} problems, targets, machines or compilers"
            else:
                what = "no trials"
            raise UsageError(f"t4: found {what}, allowed one: choose by --run, --shape, --target, --machine")


def t4_bytes(recording: Recording, is_compressed: bool = False) -> bytes:
    """Returns the content of a T4 file, JSON or compressed by gzip; equal recordings give equal bytes."""
    text = json.dumps(t4_document(recording), indent=None, separators=(",", ":"), allow_nan=False)
    content = text.encode() + b"\n"
    if is_compressed:
        return gzip.compress(content, mtime=0)
    return content


def t4_document(recording: Recording) -> Document:
    """Returns the JSON document of a T4 file: one result per trial, times in seconds."""
    codes: dict[str, int] = {}
    return {
        "schema_version": SCHEMA_VERSION,
        "metadata": _metadata(recording.runs[0], recording.spaces, recording.trials),
        "results": [_result(trial, codes) for trial in recording.trials],
    }


def _metadata(run: Run, spaces: tuple[SearchSpace, ...], trials: tuple[StoredTrial, ...]) -> Document:
    constraints: list[str] = []
    for space in spaces:
        constraints += [expression.full_text for expression in (*space.constraints, *space.preferences)]
    own = TunerMetadata(
        version=TUNER_VERSION,
        problem=run.settings.problem,
        target=run.settings.target.text,
        threads=run.settings.threads,
        machine=run.machine,
        compiler=run.compiler,
        knobs=_knobs(spaces, trials),
        constraints=tuple(constraints),
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
    measurements: list[Document] = []
    if record.median_s is not None:
        measurements.append({"name": TIME, "value": record.median_s, "unit": UNIT})
    own: Document = {"trial": trial.number}
    if record.artifact_sha256:  # a number that trials of equal machine code share
        own["code"] = codes.setdefault(record.artifact_sha256, len(codes))
    return {
        "timestamp": trial.created.isoformat(),
        "configuration": {STRATEGY: record.candidate.strategy, **dict(record.candidate.choices)},
        "objectives": [TIME],
        "times": _times(record),
        "invalidity": CORRECT if failure is None else invalidity_of(failure),
        "correctness": int(failure is None),
        "measurements": measurements,
        OWN: own | _own(record),
    }


def _times(record: Record) -> Document:
    stages = dict(record.stage_s)
    times: Document = {"compilation_time": sum(stages.get(name, 0.0) for name in COMPILING)}
    if "verify" in stages:
        times["validation"] = stages["verify"]
    if isinstance(record.outcome, Measurement):
        times["runtimes"] = list(record.outcome.samples_s)
    return times


def _own(record: Record) -> Document:
    """Returns the part of a result that T4 cannot express."""
    if isinstance(record.outcome, Failure):
        return {**encode(record.outcome)}
    own: Document = {"verdict": record.correct_verdict and encode(record.correct_verdict)}
    if isinstance(record.outcome, Measurement):
        time = record.outcome
        own |= encode(TunerTime(time.interval_s, time.inner_calls, time.is_complete, time.cold_median_s))
    return own


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
