"""A recording made of fabricated trials: 120 points, every kind of failure, code that points share."""

import dataclasses
import itertools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.t4_writer import Recording, t4_bytes
from tests import trials
from tests.tuning import fakes
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.records import Measurement, Record, Verdict
from tuner.core.runs import Run
from tuner.core.trials import StoredTrial
from tuner.space.search_space import Knob, SearchSpace

KNOBS = (Knob("tile", (2, 4, 8, 16, 12)), Knob("unroll", tuple(range(12))), Knob("order", ("nm", "mn")))
SPACE = SearchSpace("fabricated", KNOBS)
RUN: Run = trials.run(settings=fakes.settings(target=TargetName("cpu")))


def candidates() -> list[Candidate]:
    """Returns all candidates, the last knob varying fastest."""
    picks = itertools.product(*(knob.choices for knob in KNOBS))
    return [Candidate.of("fabricated", dict(zip(SPACE.names, values, strict=True))) for values in picks]


def outcome_of(number: int) -> Measurement | Failure:
    """Returns the outcome of a point: every seventh fails, at each stage in turn."""
    if number % 7 == 3:
        stage = list(Stage)[number // 7 % len(Stage)]
        return Failure(stage, f"timed out after {number} s" if stage is Stage.RUN else f"fails at {number}")
    time_s = 1e-3 * (1 + (number * 37 % 120) / 7)
    samples_s = (time_s * 1.01, time_s, time_s * 0.97)
    return Measurement(samples_s, 3, time_s, (time_s * 0.97, time_s * 1.01), is_complete=number % 5 != 0)


def trial(number: int) -> StoredTrial:
    """Returns the trial of a point; points 4k and 4k + 1 are the same code where both have a time."""
    outcome = outcome_of(number)
    is_timed = isinstance(outcome, Measurement)
    twin = number - 1 if number % 4 == 1 and isinstance(outcome_of(number - 1), Measurement) else number
    record = Record(
        problem=RUN.settings.problem,
        candidate=candidates()[number],
        target=TargetName("cpu"),
        outcome=outcome_of(twin) if is_timed else outcome,
        script_sha256=f"script {number}",
        artifact_sha256=f"code {twin}" if is_timed else "",
        stage_s=(("transform", 0.25), ("lower", 0.5), ("verify", 0.125)),
        verdict=Verdict(0.25 + twin / 1000, 64, ("a note",)) if is_timed else None,
    )
    return dataclasses.replace(trials.trial(number, outcome), record=record)


def recording() -> Recording:
    return Recording((RUN,), tuple(trial(number) for number in range(120)), (SPACE,))


def write_recording(folder: Path, name: str = "fabricated.t4.json.gz") -> Path:
    path = folder / name
    path.write_bytes(t4_bytes(recording(), is_compressed=name.endswith(".gz")))
    return path


def write_foreign(path: Path, points: Iterable[tuple[Mapping[str, Any], float | None]]) -> Path:
    """Writes a recording as another tuner does. ``points``: (knobs, milliseconds); None: it failed to run."""
    results = []
    for knobs, time_ms in points:
        measured = [] if time_ms is None else [{"name": "time", "value": time_ms, "unit": ""}]
        invalidity = "runtime" if time_ms is None else "correct"
        result = {"configuration": knobs, "invalidity": invalidity, "measurements": measured}
        results.append({**result, "objectives": ["time"], "times": {}})
    path.write_text(json.dumps({"schema_version": "1.0.0", "metadata": {}, "results": results}))
    return path
