"""Reports as values."""

import datetime
from collections.abc import Mapping
from dataclasses import replace

from tests.trials import measurement, run, trial
from tuner.analysis.selected_result import SelectedResult, select_result
from tuner.core.candidate import Candidate, Value
from tuner.core.records import Verdict
from tuner.core.runs import Counts, Run, StoredTrial
from tuner.results.report.content import BestKnown, Report, ReportedRun

MOMENT = datetime.datetime(2026, 2, 1, tzinfo=datetime.UTC)


def many(count: int = 30) -> tuple[StoredTrial, ...]:
    """Returns timed trials of a knob that decides the time and of one that does not."""
    timed = (trial(n, measurement(1e-3 * (1 + n % 7), 0.01)) for n in range(count))
    return tuple(
        with_candidate(each, "fake", {"decides": n % 7, "idle": n % 3}) for n, each in enumerate(timed)
    )


def with_candidate(made: StoredTrial, strategy: str, knobs: Mapping[str, Value]) -> StoredTrial:
    return replace(made, record=replace(made.record, candidate=Candidate.of(strategy, dict(knobs))))


def reported(trials: tuple[StoredTrial, ...], of: Run | None = None) -> ReportedRun:
    records = [each.record for each in trials]
    statuses = [record.status for record in records]
    verified = sum(isinstance(record.outcome, Verdict) for record in records)
    counts = Counts(len(trials), statuses.count("measured"), verified, statuses.count("failed"), 0)
    return ReportedRun(of or run(), counts, trials)


def best_of(of: Run, *trials: StoredTrial) -> BestKnown:
    selected = select_result(trials, of.noise)
    assert isinstance(selected, SelectedResult)
    return BestKnown(selected, of)


def report(*runs: ReportedRun, best: tuple[BestKnown, ...] = (), left_out: int = 0) -> Report:
    return Report(best, runs, left_out, "0.1.0", MOMENT)
