"""What ``tuner tune payload.mlir --json`` prints."""

from typing import Any

from tuner.program_report import run_document, times_document
from tuner.report import problem_document, trial_document, tune_document
from tuner.tuning.program_tuning import TunedProblem, TunedProgram


def program_document(tuned: TunedProgram) -> dict[str, Any]:
    """Returns the runs of all problems, and the program with and without their scripts."""
    report, plain = tuned.report, tuned.plain
    return {
        "target": tuned.target,
        "problems": [_problem(each) for each in tuned.problems],
        "program": None if report is None else run_document(tuned.request, report),
        "plain": None if plain is None or plain.times is None else times_document(plain.times),
        "failure": tuned.failure or None,
        "speedup": tuned.speedup,
        "seconds": tuned.seconds,
    }


def _problem(each: TunedProblem) -> dict[str, Any]:
    tuned, trial = each.tuned, each.trial
    run = None
    if tuned is not None:
        run = tune_document(tuned.run, tuned.counts, tuned.answer, tuned.seconds, tuned.roofline)
    return {
        "problem": problem_document(each.problem),
        "run": run,
        "used": None if trial is None else trial_document(trial),
        "reason": each.reason or None,
    }
