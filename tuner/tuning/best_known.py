"""Finds the best that is known for a problem, over all its runs."""

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from tuner.analysis.answer import Answer, answer_of
from tuner.core.errors import UsageError
from tuner.core.problem import Problem
from tuner.core.runs import StoredTrial, TrialQuery, record_of
from tuner.core.target_name import TargetName
from tuner.tuning.advice import tune_command
from tuner.tuning.composition import Composition
from tuner.tuning.target_choice import AUTO, resolve_target, timed_here

if TYPE_CHECKING:
    from tuner.db.store import Store


def best_answer(
    store: "Store",
    problem: Problem,
    machine: str,  # Machine.name
    target: str | None = None,
    threads: int | None = None,
) -> Answer:
    """Returns the answer of the run with the fastest one, reliable ones first; replays do not count.

    Raises UsageError when nothing was measured.
    """
    query = TrialQuery.of(problem, target=target, machine=machine, threads=threads, status="measured")
    answer = fastest_answer(store, tuple(filter(is_measured_there, store.trials(query))))
    if answer is None:
        raise _nothing_known(store, problem, query)
    return answer


def fastest_answer(store: "Store", trials: tuple[StoredTrial, ...]) -> Answer | None:
    """Returns the fastest of the answers that runs give with these trials, reliable ones first."""
    by_run: dict[int, list[StoredTrial]] = {}
    for trial in trials:
        by_run.setdefault(trial.run, []).append(trial)
    runs = {run: store.run(run) for run in by_run}
    answers = (answer_of(tuple(tried), runs[run].noise) for run, tried in by_run.items())
    return min(
        (answer for answer in answers if answer is not None),
        key=lambda answer: (bool(runs[answer.best.run].unreliable), answer.measurement.median_s),
        default=None,
    )


def best_here(
    store: "Store",
    composition: Composition,
    problem: Problem,
    word: str = AUTO,  # for a target
    threads: int | None = None,
) -> Answer:
    """Returns the answer for a target on this machine; ``auto`` is the first that gives times and has one.

    Raises UsageError when nothing was measured, or the target does not work here.
    """
    timed = tuple(timed_here(composition)) if word == AUTO else ()
    for target in timed[:-1]:
        with contextlib.suppress(UsageError):
            return _best_of(store, composition, problem, target, target.kind, threads)
    last = timed[-1] if timed else resolve_target(word, composition)
    return _best_of(store, composition, problem, last, last.kind if word == AUTO else word, threads)


def best_known(
    store: "Store",
    composition: Composition,
    problem: Problem,
    word: str = AUTO,  # for a target
    threads: int | None = None,
    machine: str | None = None,  # Machine.name; None: this one
) -> Answer:
    """Returns the answer for a target on this machine, as ``best_here``, or on another. Raises UsageError."""
    if machine is None:
        return best_here(store, composition, problem, word, threads)
    return best_answer(store, problem, machine, None if word == AUTO else word, threads)


def bests_here(store: "Store", composition: Composition, query: TrialQuery) -> tuple[StoredTrial, ...]:
    """Returns the best trial of each problem, target and number of threads that was timed on this machine."""
    found = []
    for fastest in filter(is_measured_there, store.trials(replace(query, best=True, status="measured"))):
        record = record_of(fastest)
        kind = composition.kinds.get(record.target.kind)
        if kind is not None and kind.machine(record.target).name == fastest.machine.name:
            machine, target = fastest.machine.name, record.target.text
            found.append(best_answer(store, record.problem, machine, target, fastest.threads).best)
    return tuple(found)


def _best_of(
    store: "Store",
    composition: Composition,
    problem: Problem,
    target: TargetName,
    asked: str,  # a kind means all its chips: code for sm_90a runs where code for sm_90 does
    threads: int | None,
) -> Answer:
    machine = composition.kind(target).machine(target)
    return best_answer(store, problem, machine.name, asked, threads)


def is_measured_there(trial: StoredTrial) -> bool:
    """Tells whether a trial ran on the machine that it names; a replay only tells of one."""
    return trial.record is not None and not trial.record.target.is_replay


def _nothing_known(store: "Store", problem: Problem, query: TrialQuery) -> UsageError:
    words = [query.operation, query.shape, query.dtype, query.layout, query.epilogue, query.target]
    what = " ".join(word for word in words if word is not None)
    if query.threads is not None:
        what += f" with threads={query.threads}"
    elsewhere = {
        trial.machine.name
        for trial in store.trials(TrialQuery.of(problem, best=True))
        if trial.machine.name != query.machine and is_measured_there(trial)
    }
    if elsewhere:
        found = ", ".join(sorted(elsewhere))
        return UsageError(f"{what}: nothing measured on {query.machine!r}, only on {found} (--machine)")
    verified = store.trials(replace(query, status="verified", limit=1))
    if verified:
        line = f"{what}: nothing measured, only verified; listed by: "
        return UsageError(line, f"tuner history --run {verified[0].run} --status verified")
    return UsageError(f"{what}: nothing measured yet; begin with: ", tune_command(query))
