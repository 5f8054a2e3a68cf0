"""What a warm start and seeds save: ``python -m benchmarks.search.warm_start FILE... [--json]``.

Each shape is searched by the real loop on a replay of its recording, once beginning with the best of all
other recordings, once with nothing known; and by the sampler alone beginning with the seed rows of the
machine that recorded it. A search ends with the first trial that is as fast as a share of the optimum.
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
from tuner.core.runs import RunSettings
from tuner.core.target_name import REPLAY, TargetName
from tuner.cost_model.seed_rows import seed_rows
from tuner.db.store import Store
from tuner.recorded.reading import read_recorded
from tuner.recorded.space import RecordedSpace
from tuner.samplers import make_sampler
from tuner.tuning.events import Event, TrialDone
from tuner.tuning.interruption import Interruption
from tuner.tuning.parts.real import real_composition
from tuner.tuning.parts.recording import replay_settings
from tuner.tuning.run import begin
from tuner.tuning.run_request import TIMED_SAMPLER, RunRequest

GOOD = 0.95  # of the optimum's speed, unless asked for
WITHIN = 10  # trials that a warm start is to need at most


def main() -> None:
    """Runs the benchmark."""
    words = _arguments()
    rows = [_row(file, words) for file in words.files]
    for row in rows:
        told = ", ".join(
            f"{name} {row[name]['median']:g} (at most {row[name]['worst']})"
            for name in ("warm", "seeded", "cold")
        )
        print(f"{row['file']}: trials to {words.share:.0%} of the optimum: {told}", file=sys.stderr)
    settings = {
        "files": [file.name for file in words.files],
        "sampler": words.sampler,
        "seeds": words.seeds,
        "trials": words.trials,
        "share_of_optimum": words.share,
    }
    summary = {"all_within_10": all(row["warm"]["worst"] <= WITHIN for row in rows)}
    emit(report("warm_start", settings, rows, summary), words.json, words.output)


def _row(file: Path, words: argparse.Namespace) -> dict[str, Any]:
    others = tuple(other for other in words.files if other != file)
    space = read_recorded(file)
    plain = _settings(file, space, words)
    warm = replace(plain, warm_files=tuple(str(other.absolute()) for other in others))
    good_share = float(np.mean(_is_good(space.times_s, space, words.share)))
    return {
        "file": file.name,
        "problem": None if space.problem is None else space.problem.key,
        "rows": space.rows,
        "good_rows": good_share,  # share of the points that are good enough: what chance would find
        "from": [other.name for other in others],
        "warm": _summary([_trials(warm, space, seed, words.share) for seed in range(words.seeds)]),
        "seeded": _summary([_seeded_trials(space, seed, words) for seed in range(words.seeds)]),
        "cold": _summary([_trials(plain, space, seed, words.share) for seed in range(words.seeds)]),
    }


def _settings(file: Path, space: RecordedSpace, words: argparse.Namespace) -> RunSettings:
    if space.problem is None:
        sys.exit(f"{file}: found no problem of this tuner, allowed what tuner record-space wrote")
    target = TargetName(REPLAY, str(file)).text
    request = RunRequest(
        space.problem, target, threads=space.threads, sampler=words.sampler, trials=words.trials
    )
    return replay_settings(request, workers=1)


def _seeded_trials(space: RecordedSpace, seed: int, words: argparse.Namespace) -> int:
    """Returns the same for a search that begins with seed rows."""
    assert space.problem is not None  # _settings refused it
    seeds = seed_rows(space.feasible, space.problem, space.machine, space.threads)
    method = make_sampler(words.sampler, space.feasible, seed, seeds)
    for number in range(min(words.trials, space.rows)):
        row = method.ask(number)
        assert row is not None  # rows are left
        time_s = float(space.times_s[row])
        if _is_good(np.array(time_s), space, words.share):
            return number + 1
        method.tell(row, None if np.isnan(time_s) else time_s)
    return int(words.trials) + 1


def _trials(settings: RunSettings, space: RecordedSpace, seed: int, share: float) -> int:
    """Returns the number of the first good trial, counted from 1; one more than the budget for none."""
    interruption, found = Interruption(), []

    def stop_when_good(event: Event) -> None:
        if isinstance(event, TrialDone) and _is_good(np.array(event.record.median_s or np.nan), space, share):
            found.append(event.number + 1)
            interruption.ask()

    with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/results.db") as store:
        begin(replace(settings, seed=seed), real_composition(), store, interruption, stop_when_good)
    assert settings.trials is not None
    return min(found, default=settings.trials + 1)


def _is_good(times_s: np.ndarray[Any, Any], space: RecordedSpace, share: float) -> Any:
    """Tells which times are good enough; failures have none."""
    return times_s <= np.nanmin(space.times_s) / share


def _summary(trials: list[int]) -> dict[str, Any]:
    return {
        "median": statistics.median(trials),
        "mean": statistics.mean(trials),
        "worst": max(trials),
        "within_10": sum(each <= WITHIN for each in trials),
        "trials": trials,
    }


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
