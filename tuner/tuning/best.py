"""Finds the best that is known for a problem, over all its runs."""

from typing import TYPE_CHECKING

from tuner.answer import Answer, answer_of
from tuner.errors import UsageError
from tuner.problem import Problem
from tuner.runs import StoredTrial, TrialQuery

if TYPE_CHECKING:
    from tuner.db.store import Store


def best_answer(
    store: "Store",
    problem: Problem,
    machine: str,  # Machine.name
    target: str | None = None,
    threads: int | None = None,
) -> Answer:
    """Returns the answer of the run with the fastest one. Raises UsageError when nothing was measured."""
    query = _query(problem, target, machine, threads)
    by_run: dict[int, list[StoredTrial]] = {}
    for trial in store.trials(query):
        by_run.setdefault(trial.run, []).append(trial)
    answers = [answer_of(tuple(trials), store.run(run).noise) for run, trials in by_run.items()]
    known = [answer for answer in answers if answer is not None]
    if not known:
        raise UsageError(_nothing_known(store, query))
    return min(known, key=lambda answer: answer.measurement.median_s)


def _query(problem: Problem, target: str | None, machine: str | None, threads: int | None) -> TrialQuery:
    return TrialQuery(
        operation=problem.operation,
        shape=problem.shape,
        dtype=problem.dtype,
        layout=problem.layout,
        epilogue=problem.epilogue,
        output=problem.output,
        target=target,
        machine=machine,
        threads=threads,
        status="measured",
    )


def _nothing_known(store: "Store", query: TrialQuery) -> str:
    words = [query.operation, query.shape, query.dtype, query.layout, query.epilogue, query.target]
    what = " ".join(word for word in words if word is not None)
    if query.threads is not None:
        what += f" with threads={query.threads}"
    elsewhere = {
        trial.machine.name
        for trial in store.trials(
            TrialQuery(
                operation=query.operation,
                shape=query.shape,
                dtype=query.dtype,
                layout=query.layout,
                epilogue=query.epilogue,
                output=query.output,
                best=True,
            )
        )
        if trial.machine.name != query.machine
    }
    if elsewhere:
        found = ", ".join(sorted(elsewhere))
        return f"{what}: nothing measured on {query.machine!r}, only on {found} (--machine)"
    return f"{what}: nothing measured yet; begin with: tuner tune {query.operation} {query.shape}"
