"""JSON documents that other programs read. From the first release on, keys are added and none is renamed.

First runs and their results, then trials with their measurements, then lists of runs and the database; at the
end CSV.
"""

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tuner.analysis.ratios import (
    Comparable,
    NotComparable,
    against_baseline,
    between_trials,
    ratio_document,
    sensitivity_text,
)
from tuner.analysis.selected_result import SelectedResult, Tied, timed
from tuner.core.candidate import candidate_document
from tuner.core.errors import Failure
from tuner.core.fusions import text_hash
from tuner.core.problem import Problem
from tuner.core.problem_classes import FusedProblem
from tuner.core.problem_documents import ProblemDocument
from tuner.core.queries import Counts, DatabaseInfo
from tuner.core.records import Conditions, Measurement
from tuner.core.round_quality import StoredRound
from tuner.core.runs import Run
from tuner.core.serialization import encode, printable, utc_text
from tuner.core.trials import StoredTrial
from tuner.results.output.formatting import gflop_per_s
from tuner.space.scripts.header import custom_ops

if TYPE_CHECKING:
    from tuner.analysis.coverage import UntriedValues
    from tuner.tuning.tuned_run import TunedRun

Document = dict[str, Any]
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # of cells that a spreadsheet evaluates as a formula
NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
CSV_COLUMNS = (
    *("trial", "run", "op", "shape", "dtype", "output", "layout", "epilogue", "align", "cache"),
    *("target", "threads", "machine", "strategy", "knobs", "status", "stage", "reason", "median_s"),
    *("gflop_per_s", "created", "reliability", "unreliable", "stale", "early_stopped_after", "is_best"),
)


def tune_document(run: Run, counts: Counts, selected: SelectedResult | None, seconds: float) -> Document:
    """Returns the document of ``tune --json``; ``selected``: the run's result, None: no trial has a time."""
    return {
        "run": run.id,
        "status": run.status,
        "problem": problem_document(run.settings.problem),
        "target": run.settings.target.text,
        "threads": run.settings.threads,
        "machine": run.machine.name,
        "counts": counts_document(counts),
        "noise": run.noise,
        "reliability": run.reliability.text,
        **_selected_documents(selected, run),
        "roofline": encode(run.roofline),
        "idle_share": run.idle_share,
        "first": [
            {"origin": point.origin, "source": point.source, **candidate_document(point.candidate)}
            for point in run.settings.first or ()
        ],
        "seconds": seconds,
    }


def tied_document(tie: Tied, selected: SelectedResult, run: Run) -> Document:
    """Returns JSON of one tied trial of a run; its "slowdown" is relative to the fastest tied trial."""
    measurement = timed(tie.trial)
    return {
        "trial": tie.trial.id,
        **candidate_document(tie.trial.record.candidate),
        "median_s": measurement.median_s,
        "interval_s": list(measurement.interval_s),
        "reliability": tie.trial.reliability.text,
        **slowdown_document(between_trials(run, tie.trial, selected.tied[0])),
    }


def slowdown_document(compared: Comparable | NotComparable) -> Document:
    """Returns the JSON fields "slowdown", "slowdown_interval", "slowdown_unknown" of compared times.

    Numbers are relative differences: 0.02 is 2 % longer. "slowdown" is null if the times are not comparable,
    and "slowdown_unknown" says why; the interval may still be known.
    """
    if isinstance(compared, NotComparable):
        interval = None if compared.interval is None else [end - 1 for end in compared.interval]
        return {"slowdown": None, "slowdown_interval": interval, "slowdown_unknown": compared.reason}
    return {
        "slowdown": compared.longer,
        "slowdown_interval": list(compared.longer_interval),
        "slowdown_unknown": None,
    }


def problem_document(problem: Problem) -> Document:
    """Returns the JSON document of a problem.

    Its field "output" names the type of C, even if that is the default; "fusion" is the hash of a fusion.
    """
    document = {**encode(ProblemDocument.of(problem)), "output": problem.result_dtype}
    if not isinstance(problem, FusedProblem):
        return document
    del document["facts"]
    return document | {"fusion": text_hash(problem.text)}


def counts_document(counts: Counts) -> Document:
    """Returns the numbers of a run's trials as JSON: proposed, by outcome, and reused."""
    document: Document = encode(counts)
    return document


def baseline_document(run: Run, best: StoredTrial) -> Document | None:
    """Returns JSON of the baseline's time and its ratio to the run's best trial; None without a baseline.

    "ratio" above 1: the tuned kernel is faster. "operands_offset_bytes": how far operands lie past a cache
    line, null for a GPU's baseline.
    """
    baseline = run.baseline
    compared = against_baseline(run, best)
    if baseline is None or compared is None:
        return None
    return {
        "name": baseline.name,
        "choice": run.settings.baseline_library or None,
        "threads": baseline.threads,
        "operands_offset_bytes": run.settings.problem.offset_bytes if baseline.threads else None,
        "median_s": baseline.measurement.median_s,
        **ratio_document(compared),
        "libraries": list(map(encode, baseline.libraries)),
    }


def history_document(trial: StoredTrial) -> Document:
    """Returns one trial as ``tuner history --format json`` lists it, without the field ``is_best``."""
    record = trial.record
    failure = record.outcome if isinstance(record.outcome, Failure) else None
    return {
        "trial": trial.id,
        "run": trial.run,
        "problem": problem_document(record.problem),
        "target": record.target.text,
        "threads": trial.threads,
        "machine": trial.machine.name,
        **candidate_document(record.candidate),
        "status": record.status,
        "stage": failure and failure.stage.value,
        "reason": failure and failure.reason,
        "median_s": trial.best_s,
        "gflop_per_s": gflop_per_s(record.problem, trial.best_s),
        "reliability": trial.reliability.text,
        "unreliable": trial.reliability.unreliable or None,
        "early_stopped_after": trial.early_stopped and len(trial.early_stopped.samples_s),  # samples
        "reused_from": record.reused_from,
        "stale": trial.stale or None,
        "created": utc_text(trial.created),
    }


def listed_document(trial: StoredTrial, best: Collection[int]) -> Document:
    """Returns a trial as ``tuner history --format json`` lists it; ``best``: ids of the best trials."""
    return history_document(trial) | {"is_best": trial.id in best}


def trial_document(trial: StoredTrial) -> Document:
    """Returns the complete document of one trial, as ``tuner show ID --json`` prints it."""
    record = trial.record
    measured = record.outcome if isinstance(record.outcome, Measurement) else None
    return {
        **history_document(trial),
        "row": trial.row,
        "stages_s": dict(record.stage_s),
        "verdict": encode(record.correct_verdict),
        "resources": encode(record.resources),
        "measurement": measured and measurement_document(measured),
        "final": trial.final and measurement_document(trial.final),
        "script_sha256": record.script_sha256,
        "artifact_sha256": record.artifact_sha256,
        "script": trial.script_text,
    }


def measurement_document(measurement: Measurement) -> Document:
    """Returns JSON of a measurement in seconds per call; ``interval_s`` null for an early-stopped one."""
    return {
        "median_s": measurement.median_s,
        "interval_s": list(measurement.interval_s) if measurement.is_complete else None,
        "inner_calls": measurement.inner_calls,
        "is_complete": measurement.is_complete,
        "cold_median_s": measurement.cold_median_s,
        "conditions": conditions_document(measurement.conditions),
        "offsets": encode(measurement.offsets),
        "samples_s": list(measurement.samples_s),
    }


def conditions_document(conditions: Conditions | None) -> Document | None:
    """Returns JSON of a GPU's sensor readings and why it throttled its clocks; None without readings."""
    if conditions is None:
        return None
    return {**encode(conditions), "slowdowns": list(conditions.slowdowns)}


def round_document(stored: StoredRound) -> Document:
    """Returns JSON of one timing round: noise, why its times are not reliable (or null), host conditions."""
    quality = stored.quality
    return {
        "number": stored.number,
        "started": utc_text(stored.started),
        "is_answering": stored.is_answering,
        "noise": quality.noise,
        "disturbance": quality.disturbance,
        "unreliable": quality.reliability.reason or None,
        "is_lost": quality.is_lost,
        "host": encode(quality.host),
    }


def run_document(
    run: Run,
    counts: Counts,
    selected: SelectedResult | None,
    rounds: tuple[StoredRound, ...] = (),
    untried: tuple["UntriedValues", ...] = (),
) -> Document:
    """Returns the complete JSON document of one run; its field "seconds" is 0 for an unknown duration.

    ``selected``: the run's result, None: no trial has a time. ``untried``: values of knobs that no trial of
    the run has.
    """
    settings = run.settings
    return {
        **tune_document(run, counts, selected, run.seconds or 0.0),
        "rounds": list(map(round_document, rounds)),
        "untried": list(map(encode, untried)),
        "strategies": [strategy.text for strategy in settings.strategies],
        "sampler": settings.sampler,
        "seed": settings.seed,
        "trials": settings.trials,
        "budget_s": settings.budget_s,
        "workers": settings.workers,
        "fresh": settings.fresh,
        "warm_start": settings.warm_start,
        "warm_files": list(settings.warm_files),
        "mlir": run.compiler.mlir,
        "compiler": run.compiler.fingerprint,
        "tuner": run.tuner_version,
        "load_average": run.load_average,
        "created": utc_text(run.created),
        "elsewhere": encode(run.elsewhere),
        "space": settings.space_yaml,
        "recording": settings.recording or None,
    }


def listed_run_document(tuned: "TunedRun") -> Document:
    """Returns the JSON document of one run as ``tuner history --runs --json`` lists it."""
    run = tuned.run
    return {
        **tune_document(run, tuned.counts, tuned.selected, tuned.seconds),
        "sampler": run.settings.sampler,
        "unreliable": run.reliability.unreliable or None,
        "created": utc_text(run.created),
    }


def database_document(database: DatabaseInfo) -> Document:
    """Returns JSON of ``tuner db info --json``: address, revision, problems, numbers of runs and trials."""
    document: Document = encode(database)
    return document


def history_csv(trials: Iterable[StoredTrial], best: Collection[int] = ()) -> Iterator[str]:
    """Yields lines of CSV, first a header; knobs are JSON in a field; ``best``: ids of best trials."""
    yield _csv_line(CSV_COLUMNS)
    for trial in trials:
        columns = history_columns(trial)
        columns |= {"knobs": json.dumps(columns["knobs"]), "is_best": trial.id in best}
        yield _csv_line([csv_cell(columns[column]) for column in CSV_COLUMNS])


def _csv_line(cells: Sequence[object]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def history_columns(trial: StoredTrial) -> dict[str, Any]:
    """Returns the fields of ``history_document``, plus columns for the problem's op, shape, dtype, ..."""
    columns = history_document(trial)
    problem = trial.record.problem
    return columns | {
        "op": problem.operation,
        "output": problem.result_dtype,
        **{
            name: getattr(problem, name)
            for name in ("shape", "dtype", "layout", "epilogue", "align", "cache")
        },
    }


def _selected_documents(selected: SelectedResult | None, run: Run) -> Document:
    if selected is None:
        return {"best": None, "can_separate": None, "tied": [], "tied_set": []}
    record = selected.best.record
    measurement = selected.measurement
    reliability = selected.best.reliability
    best = {
        "trial": selected.best.id,
        **candidate_document(record.candidate),
        "median_s": measurement.median_s,
        "interval_s": list(measurement.interval_s),
        "cold_median_s": measurement.cold_median_s,
        "conditions": conditions_document(measurement.conditions),
        "offsets": encode(measurement.offsets),
        "sensitive": sensitivity_text(measurement, record.problem, run.noise, reliability) or None,
        "gflop_per_s": gflop_per_s(record.problem, timed(selected.best).median_s),
        "reliability": reliability.text,
        "unreliable": reliability.reason or None,
        "baseline": baseline_document(run, selected.best),
        "custom_ops": list(custom_ops(selected.best.script_text)),  # empty: stock mlir-opt runs the script
    }
    return {
        "best": best,
        "can_separate": selected.can_separate and reliability.is_reliable,
        "tied": [trial.id for trial in selected.tied],
        "tied_set": [tied_document(tie, selected, run) for tie in selected.ties],
    }


def csv_cell(value: object) -> object:
    """Returns a cell that no spreadsheet evaluates: an apostrophe precedes text that starts like a formula.

    Source: https://owasp.org/www-community/attacks/CSV_Injection.
    """
    if not isinstance(value, str) or NUMBER.fullmatch(value):
        return value
    return printable(f"'{value}" if value.startswith(FORMULA_STARTS) else value)
