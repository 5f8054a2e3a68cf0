"""Runs and trials -> one HTML page that stands alone: no script, no network, readable in dark and light."""

import datetime
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import jinja2

from tuner.analysis.ablation import Ablation, TooFew, ablate
from tuner.analysis.answer import Answer
from tuner.cli.output.ablation import gain_texts
from tuner.cli.output.curve import Curve, curve_of
from tuner.cli.output.formatting import count_text, interval_text, knobs_text, seconds_text, speed_text
from tuner.cli.output.json_documents import gflop_per_s, utc_text
from tuner.cli.output.result import baseline_words, counts_words
from tuner.core.errors import Failure
from tuner.core.runs import Counts, Run, StoredTrial, record_of

TEMPLATE = "page.html.j2"
FAILURES_SHOWN = 12  # kinds of a run, those met most


@dataclass(frozen=True)
class BestKnown:
    """The best of one problem on one machine."""

    answer: Answer
    run: Run  # that it comes from


@dataclass(frozen=True)
class ReportedRun:
    """One run with all its trials."""

    run: Run
    counts: Counts
    trials: tuple[StoredTrial, ...]  # by number


@dataclass(frozen=True)
class FailureKind:
    """Failures of one stage whose reasons differ in numbers only."""

    stage: str
    reason: str  # of the first
    count: int


@dataclass(frozen=True)
class _RunView:
    """What the template draws of a run."""

    run: Run
    counts: str
    curve: Curve | None
    failures: tuple[FailureKind, ...]
    failures_left_out: int
    ablation: Ablation | TooFew


def page_html(
    best: tuple[BestKnown, ...],
    runs: tuple[ReportedRun, ...],
    runs_left_out: int,
    version: str,
    moment: datetime.datetime,
) -> str:
    """Returns the page. Every text is escaped, whatever a database holds."""
    folder = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=folder, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "seconds": seconds_text,
        "interval": interval_text,
        "utc": utc_text,
        "gain": gain_texts,
        "knobs": knobs_text,
    }
    return environment.get_template(TEMPLATE).render(
        best=[_best_row(each) for each in best],
        runs=[_view(each) for each in runs],
        runs_left_out=runs_left_out,
        version=version,
        moment=moment,
    )


def failure_kinds(trials: tuple[StoredTrial, ...]) -> tuple[FailureKind, ...]:
    """Counts the failures by stage and reason, the most frequent first."""
    outcomes = [trial.record.outcome for trial in trials if trial.record is not None]
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    kinds = Counter(_kind(failure) for failure in failures)
    first = {_kind(failure): failure for failure in reversed(failures)}
    return tuple(
        FailureKind(first[kind].stage.value, first[kind].reason, count) for kind, count in kinds.most_common()
    )


def _kind(failure: Failure) -> tuple[str, str]:
    return failure.stage.value, re.sub(r"\d+", "#", failure.reason)


def _best_row(best: BestKnown) -> dict[str, object]:
    answer, run = best.answer, best.run
    record, measurement = record_of(answer.best), answer.measurement
    return {
        "problem": record.problem.key,
        "target": f"{record.target}, {count_text(answer.best.threads, 'thread')}",
        "machine": answer.best.machine.name,
        "time": seconds_text(measurement.median_s),
        "interval": interval_text(measurement.interval_s),
        "speed": speed_text(gflop_per_s(record.problem, measurement.median_s)),
        "baseline": baseline_words(run, measurement.median_s).removeprefix(", ") or "not measured",
        "tied": len(answer.tied) - 1,
        "trial": answer.best.id,
        "run": run.id,
        "strategy": record.candidate.strategy,
        "knobs": knobs_text(record.candidate.choices),
    }


def _view(reported: ReportedRun) -> _RunView:
    kinds = failure_kinds(reported.trials)
    return _RunView(
        run=reported.run,
        counts=counts_words(reported.counts),
        curve=curve_of(reported.run, reported.trials),
        failures=kinds[:FAILURES_SHOWN],
        failures_left_out=len(kinds) - len(kinds[:FAILURES_SHOWN]),
        ablation=ablate(reported.trials),
    )
