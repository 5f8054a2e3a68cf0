"""The gain of a warm start and of seeds: ``python -m benchmarks.search.warm_start FILE... [--json]``.

Each shape is searched by the real loop on a replay of its recording, four times: begun with the best trials
of all other recordings, with the seed rows for the machine of the recording, with both, and with neither. A
search ends with the first trial that reaches a share of the optimum's speed. The trials of random search are
computed.
"""

import argparse
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results_file import add_report_options, emit, report
from tuner.core.candidate import REPLAY, TargetName
from tuner.core.requests import TIMED_SAMPLER, RunRequest
from tuner.core.runs import SEED, InitialConfiguration, RunSettings
from tuner.db.store import Store
from tuner.search.cost_model.configurations import initial_configurations
from tuner.space.recorded.reading import read_recorded
from tuner.space.recorded.recording import RecordedSpace
from tuner.targets.registry import real_backends
from tuner.targets.replay import replay_settings
from tuner.tuning.earlier_results import interleaved, planned
from tuner.tuning.events import Event, Interruption, TrialDone
from tuner.tuning.run import begin

STARTS = ("warm", "seeded", "both", "cold")
GOOD = 0.95  # of the optimum's speed, unless asked for
WITHIN = 10  # trials that a warm start is to need at most


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    rows = [_row(file, options) for file in options.files]
    for row in rows:
        given = ", ".join(f"{name} {row[name]['median']:g} (at most {row[name]['worst']})" for name in STARTS)
        print(f"{row['file']}: trials to {options.share:.0%} of the optimum: {given}", file=sys.stderr)
    settings = {
        "files": [file.name for file in options.files],
        "sampler": options.sampler,
        "seeds": options.seeds,
        "trials": options.trials,
        "share_of_optimum": options.share,
    }
    summary = {
        "all_within_10": all(row["warm"]["worst"] <= WITHIN for row in rows),
        "geometric_mean": {name: _geometric_mean(rows, name) for name in STARTS},
    }
    emit(report("warm_start", settings, rows, summary), options.json, options.output)


def _row(file: Path, options: argparse.Namespace) -> dict[str, Any]:
    others = tuple(other for other in options.files if other != file)
    space = read_recorded(file)
    settings = _settings(file, space, options)
    good = int(np.sum(_is_good(space.times_s, space, options.share)))
    return {
        "file": file.name,
        "problem": None if space.problem is None else space.problem.key,
        "rows": space.rows,
        "good_rows": good / space.rows,  # share of the points that are good enough
        "random_mean": (space.rows + 1) / (good + 1),  # draws without replacement until one is good
        "from": [other.name for other in others],
        **{
            name: _summary(
                [_trials(settings, first, space, seed, options.share) for seed in range(options.seeds)]
            )
            for name, first in _starts(space, settings, others).items()
        },
    }


def _starts(
    space: RecordedSpace, settings: RunSettings, others: tuple[Path, ...]
) -> dict[str, tuple[InitialConfiguration, ...]]:
    """Returns the initial configurations of a search, by the names of ``STARTS``."""
    warm = _warm_points(space, settings, others)
    seeds = initial_configurations(space.feasible, settings.problem, space.machine, space.threads)
    seeded = tuple(InitialConfiguration(space.feasible.candidate(row), SEED) for row in seeds)
    return dict(zip(STARTS, (warm, seeded, interleaved(warm, seeded), ()), strict=True))


def _warm_points(
    space: RecordedSpace, settings: RunSettings, others: tuple[Path, ...]
) -> tuple[InitialConfiguration, ...]:
    """Returns the initial configurations of a run that learns from the other recordings alone."""
    warm = replace(settings, warm_files=tuple(str(other.absolute()) for other in others))
    target = real_backends().target_of_run(warm)
    with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/results.db") as store:
        first = planned(warm, space.machine, target, store)[0].first
    return first or ()


def _settings(file: Path, space: RecordedSpace, options: argparse.Namespace) -> RunSettings:
    if space.problem is None:
        sys.exit(f"{file}: found no problem of this tuner, allowed what record-space wrote")
    target = TargetName(REPLAY, str(file)).text
    request = RunRequest(
        space.problem, target, threads=space.threads, sampler=options.sampler, trials=options.trials
    )
    return replay_settings(request, workers=1)


def _trials(
    settings: RunSettings,
    first: tuple[InitialConfiguration, ...],
    space: RecordedSpace,
    seed: int,
    share: float,
) -> int:
    """Returns the number of the first good trial, counted from 1; the budget plus one for none."""
    interruption, found = Interruption(), []

    def stop_when_good(event: Event) -> None:
        if isinstance(event, TrialDone) and _is_good(np.array(event.record.median_s or np.nan), space, share):
            found.append(event.number + 1)
            interruption.ask()

    with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/results.db") as store:
        begin(replace(settings, seed=seed, first=first), real_backends(), store, interruption, stop_when_good)
    assert settings.trials is not None
    return min(found, default=settings.trials + 1)


def _is_good(times_s: np.ndarray[Any, Any], space: RecordedSpace, share: float) -> Any:
    """Returns which times are good enough; failures have none."""
    return times_s <= np.nanmin(space.times_s) / share


def _summary(trials: list[int]) -> dict[str, Any]:
    return {
        "median": statistics.median(trials),
        "mean": statistics.mean(trials),
        "worst": max(trials),
        "within_10": sum(each <= WITHIN for each in trials),
        "trials": trials,
    }


def _geometric_mean(rows: list[dict[str, Any]], name: str) -> float:
    return statistics.geometric_mean(row[name]["mean"] for row in rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--sampler", default=TIMED_SAMPLER)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--share", type=float, default=GOOD, help="of the optimum's speed that is asked for")
    parser.add_argument("--trials", type=int, default=200, help="a search gives up after so many")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
