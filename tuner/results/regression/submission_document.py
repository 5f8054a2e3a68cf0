"""The JSON document of a submission: what ``tuner judge`` prints."""

from dataclasses import asdict

from tuner.analysis.ratios import ratio_document
from tuner.analysis.selected_result import timed
from tuner.core.serialization import encode
from tuner.results.differences import TrialDifference, difference_document
from tuner.results.explanations import FailedOp
from tuner.results.output.json_documents import Document, baseline_document, history_document
from tuner.results.output.run_result import roofline_share
from tuner.results.regression.submission import SubmissionResult
from tuner.results.script_stages import SCRIPT


def submission_document(result: SubmissionResult) -> Document:
    """Returns the JSON document of ``tuner judge``: the stored trial, its verdict and failed ops.

    It is compared with the best trial before it, if there is one. Ratios are of speeds: above 1, the
    submission is faster.
    """
    trial = result.trial
    record = trial.record
    return {
        **history_document(trial),
        "correct": record.status != "failed" and not record.is_compiled_only,
        "failed_ops": list(map(_quoted_op, result.failed)),
        "verdict": encode(record.correct_verdict),
        "verified_extremes": trial.final is not None,  # inputs with NaN, infinity and subnormal numbers
        **_times_document(result),
        "best": _best_document(result),  # of the history before
        "is_best": result.is_best,
        "idle_steps": None if result.facts_unknown else list(map(_quoted_op, result.idle)),
        "difference": result.difference and _difference_document(result.difference),
        "facts_unknown": result.facts_unknown or None,
        "seconds": result.seconds,
    }


def _times_document(result: SubmissionResult) -> Document:
    if result.trial.best_s is None:
        return {"interval_s": None, "noise": None, "baseline": None, "roofline_share": None}
    return {
        "interval_s": list(timed(result.trial).interval_s),
        "noise": result.run.noise,
        "baseline": baseline_document(result.run, result.trial),
        "roofline_share": roofline_share(result.run, result.trial),
    }


def _best_document(result: SubmissionResult) -> Document | None:
    if result.best is None:
        return None
    return {
        "trial": result.best.id,
        "run": result.best.run,
        "median_s": result.best.best_s,
        "now_s": result.best_now_s,  # timed interleaved with the submission
        **ratio_document(result.to_best),
    }


def _quoted_op(op: FailedOp) -> Document:
    return {**asdict(op.place), "line_text": op.line_text}


def _difference_document(difference: TrialDifference) -> Document:
    """Returns what ``tuner diff`` compares, line by line of the script alone: code has thousands of lines."""
    document = difference_document(difference)
    for stage in document["stages"]:
        if stage["stage"] != SCRIPT:
            stage["diff"] = None
    names = ("first_stage", "stages", "instructions")
    return {"from_trial": difference.first.id, **{name: document[name] for name in names}}
