"""Evaluates scripts that somebody else wrote, one after another: each is verified, timed and stored.

A submission passes what a trial of a run passes: compiled in one child process, verified and timed in
another, under limits. One that was timed alone is then timed again interleaved with the best trials so far
and with the baseline, on extreme inputs as well, as a run's top trials are. All submissions of one problem
are trials of one run, whose latest round has the times that count.
"""

import contextlib
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tuner.analysis.ratios import Comparable, NotComparable, comparison
from tuner.analysis.selected_result import timed
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure, Stage, failing_at
from tuner.core.interfaces import FINAL_EFFORT, BoundRecord, Effort, Script
from tuner.core.packings import threads_comment
from tuner.core.problem_classes import TextProblem
from tuner.core.processors import require_instructions
from tuner.core.queries import TrialQuery
from tuner.core.round_quality import Evidence
from tuner.core.runs import JUDGED, NO_FILE, ChosenStrategy, Run, RunSettings
from tuner.core.trials import StoredTrial
from tuner.mlir.cpu.needed_instructions import script_instructions
from tuner.results.best_trials import best_results
from tuner.results.differences import TrialDifference, trial_difference
from tuner.results.explanations import FailedOp, failed_ops
from tuner.results.regression.reevaluation import EvaluationCase, evaluated, runner_of
from tuner.results.regression.script_facts import ScriptFacts, ScriptFactsChild
from tuner.space.scripts.header import without_header
from tuner.targets.backends import Backends
from tuner.tuning.remeasurement import (
    Remeasurement,
    bound_record,
    quietest_reference_s,
    remeasure_top_trials,
)
from tuner.tuning.run_steps import RunSteps, Session
from tuner.tuning.tuned_run import tuned_run
from tuner.version import __version__

if TYPE_CHECKING:
    from tuner.db.store import Store


HASH_DIGITS: Final = 12
# of each code in a round: the submission twice, the best trials, the baseline
ROUND_EFFORT = replace(FINAL_EFFORT, budget_s=0.1, min_samples=7, max_samples=60)
NOTHING_EARLIER = NotComparable("no earlier trial of the problem has a time on this machine")


@dataclass(frozen=True)
class Submission:
    """A script that was submitted: plain MLIR text, and a name that its author gave it."""

    script: str
    name: str = "script"

    @property
    def candidate(self) -> Candidate:
        """Returns the candidate as which the submission is stored: its name and the hash of its text."""
        digest = Script.of(self.script).sha256[:HASH_DIGITS]
        return Candidate.of(JUDGED, {"name": self.name, "sha256": digest})


@dataclass(frozen=True)
class SubmissionResult:
    """A submission as a stored trial, compared with the best trial of the problem so far."""

    trial: StoredTrial
    run: Run
    is_best: bool  # the best trial of its problem, target, threads and machine from now on
    best: StoredTrial | None  # the best one before; None: there was none
    best_now_s: float | None  # seconds per call of ``best``, timed interleaved with the submission; None: not
    to_best: Comparable | NotComparable  # the submission's time over that of ``best``
    failed: tuple[FailedOp, ...]  # ops at which it failed
    idle: tuple[FailedOp, ...]  # steps of the script that changed nothing
    difference: TrialDifference | None  # from ``best`` to the submission; None: one of the two is missing
    facts_unknown: str  # why ``idle`` and ``difference`` are not known; "": they are
    seconds: float  # from the submission to the result


class SubmissionRun:
    """Evaluates the submissions for one problem, with children that stay; use it in one thread."""

    def __init__(self, backends: Backends, store: "Store", case: EvaluationCase) -> None:
        """Stores a new run, and starts its child processes.

        Raises UsageError for a problem that the target cannot compute.
        """
        target = backends.target(case.target)
        target.require_types(case.problem, case.target)
        self._backends = backends
        self._store = store
        self._case = case
        self._machine = target.machine(case.target)
        self._scripts: dict[Candidate, str] = {}
        self._bounds: dict[int, BoundRecord] = {}  # by id, with artifacts: of the trials that are timed next
        self._facts_known: dict[int, ScriptFacts] = {}  # by id: of the best trial
        self._began_s = time.monotonic()
        self._number = 0
        self._facts = ScriptFactsChild(target, case.target, case.timeout_s, case.memory_bytes)
        compiler = target.compiler(case.target)
        with contextlib.ExitStack() as children:
            children.callback(self._facts.close)
            self._runner = children.enter_context(runner_of(backends, case, self._bind))
            self._run_id = store.begin_run(
                _settings(case), self._machine, compiler, __version__, backends.load_average()
            )
            self._children = children.pop_all()
        with_baseline = target.with_baseline(case.baseline)
        run = store.run(self._run_id)
        self._steps = RunSteps(Session(run, (), with_baseline, store))

    def close(self) -> None:
        """Ends the child processes, and the run."""
        self._children.close()
        self._store.finish_run(self._run_id, "done", time.monotonic() - self._began_s)

    def evaluated(self, submission: Submission) -> SubmissionResult:
        """Compiles, verifies, times and stores a submission; returns the result.

        The result compares it with the best trial before it. A submission that fails has a result, too.
        Raises TunerError where a child process cannot start.
        """
        began_s = time.monotonic()
        before = self._best()
        best_of_run = tuned_run(self._store, self._run_id).best
        bound, trial = self._evaluated(submission)
        timed_round: Remeasurement | None = None
        if trial.record.median_s is not None:
            incumbents = _distinct(before, best_of_run)
            known = [(incumbent.id, self._bound_of(incumbent)) for incumbent in incumbents]
            self._bounds = dict(known) | {trial.id: bound}  # of others none is kept
            timed_round = self._timed(trial, incumbents)
            trial = self._store.trial(trial.id)
        facts = ScriptFacts(unknown="it failed")
        if trial.record.status != "failed":
            facts = self._facts_of(trial, before)
        best = self._best()
        return SubmissionResult(
            trial=trial,
            run=self._store.run(self._run_id),
            is_best=best is not None and best.id == trial.id,
            best=before,
            best_now_s=_time_of(before, timed_round),
            to_best=_compared(trial, before, timed_round),
            failed=failed_ops(self._backends, trial),
            idle=_quoted(trial, facts),
            difference=self._difference(trial, before, facts),
            facts_unknown=facts.unknown,
            seconds=time.monotonic() - began_s,
        )

    def _evaluated(self, submission: Submission) -> tuple[BoundRecord, StoredTrial]:
        candidate = submission.candidate
        number = self._number
        self._number += 1
        trial_id = self._store.propose(self._run_id, number, number, candidate, self._elapsed_s)
        self._scripts = {candidate: submission.script}
        bound = evaluated(self._runner, candidate, Effort(), number)
        self._store.record(trial_id, bound.record, bound.script.text, self._elapsed_s)
        return bound, self._store.trial(trial_id)

    def _bind(self, candidate: Candidate) -> Script:
        text = without_header(self._scripts[candidate])
        problem = self._case.problem
        with failing_at(Stage.BIND):
            needs = script_instructions(text, problem.multiplied_dtype)
            require_instructions(self._machine, needs, "the script")
        threads = self._case.threads if isinstance(problem, TextProblem) else 1
        return Script.of(threads_comment(threads) + text)

    def _best(self) -> StoredTrial | None:
        """Returns the best trial of the problem in all stored runs; None if none has a time."""
        case = self._case
        query = TrialQuery.measured(case.problem, case.target, self._machine, case.threads)
        results = best_results(self._store, query)
        return next((result.best for result in results.values()), None)

    def _timed(self, trial: StoredTrial, incumbents: tuple[StoredTrial, ...]) -> Remeasurement:
        """Times a submission interleaved with the best trials and the baseline; stores the round.

        A trial that is found wrong becomes a failed trial, and the others are timed without it. A submission
        that has no time in the round becomes a failed trial, too: its time alone may have been luck.
        """
        members = (trial, *incumbents)
        while True:
            timed_round = remeasure_top_trials(self._runner, members, ROUND_EFFORT, self._bound_of)
            for wrong, failure in timed_round.wrong:
                self._steps.refute(wrong, failure)
            wrong_ids = {wrong.id for wrong, _ in timed_round.wrong}
            members = tuple(member for member in members if member.id not in wrong_ids)
            if not wrong_ids or trial.id in wrong_ids:
                break
        if trial.id in wrong_ids:
            return timed_round
        if trial.id not in timed_round.by_trial:
            self._steps.refute(trial, Failure(Stage.MEASURE, timed_round.reason or "it has no time"))
            return timed_round
        own = tuple(pair for pair in timed_round.times if pair[0].run == self._run_id)
        trials = self._store.trials(TrialQuery(run=self._run_id, sort="number"))
        self._steps.store_round(
            replace(timed_round, times=own), timed_round.baseline, quietest_reference_s(trials)
        )
        self._steps.store_roofline()
        return timed_round

    def _bound_of(self, trial: StoredTrial) -> BoundRecord:
        return self._bounds.get(trial.id) or bound_record(trial)

    def _facts_of(self, trial: StoredTrial, before: StoredTrial | None) -> ScriptFacts:
        """Returns the facts of a trial; keeps the facts of this trial and of the best trial before it."""
        known = self._facts_known
        self._facts_known = {}
        for described in _distinct(before, trial):
            script = Script.of(described.script_text)
            facts = known.get(described.id) or self._facts.facts(self._case.problem, script)
            self._facts_known[described.id] = facts
        return self._facts_known[trial.id]

    def _difference(
        self, trial: StoredTrial, before: StoredTrial | None, facts: ScriptFacts
    ) -> TrialDifference | None:
        if before is None or facts.unknown:
            return None
        run = self._store.run(self._run_id)
        return trial_difference(run, before, trial, self._facts_known[before.id].stages, facts.stages)

    @property
    def _elapsed_s(self) -> float:
        return time.monotonic() - self._began_s


def _settings(case: EvaluationCase) -> RunSettings:
    return RunSettings(
        problem=case.problem,
        target=case.target,
        threads=case.threads,
        strategies=(ChosenStrategy(JUDGED, NO_FILE / f"{JUDGED}.mlir"),),
        space_yaml="",
        sampler=JUDGED,
        seed=case.seed,
        trials=None,
        budget_s=None,
        workers=1,
        fresh=True,
        baseline_library=case.baseline,
    )


def _distinct(*trials: StoredTrial | None) -> tuple[StoredTrial, ...]:
    """Returns those of ``trials`` that are not None, each once."""
    by_id = {trial.id: trial for trial in trials if trial is not None}
    return tuple(by_id.values())


def _time_of(before: StoredTrial | None, timed_round: Remeasurement | None) -> float | None:
    if before is None or timed_round is None or before.id not in timed_round.by_trial:
        return None
    return timed_round.by_trial[before.id].median_s


def _compared(
    trial: StoredTrial, before: StoredTrial | None, timed_round: Remeasurement | None
) -> Comparable | NotComparable:
    if before is None:
        return NOTHING_EARLIER
    if timed_round is None or trial.best_s is None:
        return NotComparable("the submission has no time")
    times = timed_round.by_trial
    if before.id not in times:
        return NotComparable(f"trial {before.id} could not be timed with it")
    evidence = Evidence(is_interleaved=True, noise=timed_round.noise, reliability=trial.reliability)
    return comparison(timed(trial), times[before.id], evidence)


def _quoted(trial: StoredTrial, facts: ScriptFacts) -> tuple[FailedOp, ...]:
    """Returns the ops of a trial's script that changed nothing, each with its line of the script."""
    lines = trial.script.splitlines()
    return tuple(FailedOp(place, lines[place.line - 1].strip()) for place in facts.idle)
