"""The fusions of a program that can be tuned, and the schedules that stored trials suggest for them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tuner.analysis.warm_start import TuningTask, distance, nearest_first
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, UsageError
from tuner.core.fusions import (
    CONTRACTION,
    CONTRACTION_ATTRIBUTE,
    CONVOLUTION,
    LOOPS,
    ROOT_ATTRIBUTE,
    Fusion,
    facts_of,
)
from tuner.core.machine import Machine
from tuner.core.problem import CACHES, MATMUL, NamedProblem, Problem, distinct_problems
from tuner.core.programs import NEAREST, SAME_CONTRACTION, TUNED, FusionSchedule
from tuner.core.runs import Run, RunQuery, StoredTrial, TaskQuery, TrialQuery
from tuner.results.best_trials import best_results, is_measured_there
from tuner.space.scripts.choice import first_configuration, no_strategy, projected_script

if TYPE_CHECKING:
    from tuner.db.store import Store


@dataclass(frozen=True)
class TunableFusions:
    """The distinct fusions of a program as problems, named by their numbers in the program: "g0"."""

    problems: tuple[NamedProblem, ...] = ()
    left_out: tuple[str, ...] = ()  # a line for each fusion that is not tuned
    why_none: str = ""  # why the program is not compiled as fusions
    seconds: float = 0.0  # that it took to find them


def tunable_fusions(text: str, entry: str | None, cache: str, machine: Machine) -> TunableFusions:
    """Returns the fusions of a payload that a strategy supports and whose results can be verified.

    ``entry`` None: ``main``, or the only public function; ``cache``: one of ``tuner.core.problem.CACHES``.
    Raises CandidateError(BIND) for text that does not parse.
    """
    from tuner.programs.fusions.payload import NotFused  # loads MLIR
    from tuner.programs.fusions.pipeline import fuse_program  # loads MLIR

    formed = fuse_program(text, entry, multiplies_pairs=machine.multiplies_pairs)
    if isinstance(formed, NotFused):
        return TunableFusions(why_none=formed.reason)
    known: dict[tuple[str, str], Problem | str] = {}  # by kind and text of a fusion
    found: list[NamedProblem] = []
    left_out: list[str] = []
    for number, fusion in enumerate(formed.program.fusions):
        key = (fusion.kind, fusion.text)
        if key not in known:
            known[key] = _problem_of(fusion, machine)
        problem, name = known[key], f"g{number}"
        if isinstance(problem, Problem):
            found.append(NamedProblem(replace(problem, cache=cache), name))
        else:
            left_out.append(f"{name} {', '.join(dict.fromkeys(fusion.ops))}: {problem}")
    return TunableFusions(distinct_problems(tuple(found)), tuple(left_out))


def _problem_of(fusion: Fusion, machine: Machine) -> Problem | str:
    from tuner.mlir.fusions import fusion_problem  # loads MLIR
    from tuner.mlir.reference.fusion_reference import draw_inputs  # loads MLIR

    if fusion.kind == LOOPS:
        return fusion.reason
    try:
        problem = fusion_problem(fusion)
        if first_configuration(problem, machine) is None:
            return no_strategy(problem, machine)
        draw_inputs(problem.fusion, np.random.default_rng(0))  # raises where results cannot be verified
    except (UsageError, CandidateError) as error:
        return str(error)
    return problem


# Schedules that stored trials suggest for a fusion.
#
# First the best schedule of the fusion itself; then of the same contraction with another epilogue, or of the
# plain matmul of the same sizes; then of the fusion of the same kind with the nearest sizes, if these are
# near. Only trials that were timed on the same class of machine count.

CPU = "cpu"
NEAREST_RUNS = 3  # so many runs are asked for a configuration: the nearest run may have none that fits
# Farther fusions are not asked: the best tiles of a convolution 4.6 octaves smaller took 1.7 times as long as
# the first configuration (docs/decisions/fusions.md).
NEAR_OCTAVES = 3.0
PACKED, DIRECT = "contraction_cpu_packed", "contraction_cpu_direct"
OF_MATMULS = {"tile_n": "panel"}  # knobs of the CPU's matmul strategies with another name in these two
# A matmul that is the whole fusion: its result is what is stored.
PLAIN_MATMUL = re.compile(rf"linalg\.matmul \{{{CONTRACTION_ATTRIBUTE}, {ROOT_ATTRIBUTE}\}}")


def fusion_schedules(store: "Store", machine: Machine, problem: Problem) -> Iterator[FusionSchedule]:
    """Yields schedules for a fusion, the best first, from the trials of a database, timed on ``machine``."""
    states = (problem.cache, *(each for each in CACHES if each != problem.cache))
    problems = tuple(replace(problem, cache=each) for each in states)
    tuned = next((found for one in problems if (found := _best(store, TaskQuery.of(one), machine))), None)
    if tuned is not None:
        candidate = tuned.record.candidate
        yield FusionSchedule(candidate, tuned.script_text, TUNED, tuned.id)
    if problem.operation in (CONTRACTION, CONVOLUTION):
        yield from _of_same_contraction(store, machine, problem)
    yield from _of_nearest(store, machine, problem)


def _of_same_contraction(store: "Store", machine: Machine, problem: Problem) -> Iterator[FusionSchedule]:
    query = RunQuery(_task(problem, machine, shape=problem.shape, dtype=problem.dtype))
    runs = [run for run in store.matching_runs(query) if _is_same(run.settings.problem, problem)]
    trials = [best for run in runs if (best := _best_of_run(store, run)) is not None]
    if trials:
        trial = min(trials, key=lambda each: (each.best_s, each.id))
        yield from _projected(trial, trial.record.candidate, problem, machine, SAME_CONTRACTION)
        return
    if not PLAIN_MATMUL.search(problem.fusion) or problem.batch > 1:
        return
    plain = TaskQuery(
        operation=MATMUL, shape=problem.shape, dtype=problem.dtype, layout="nn", epilogue="none"
    )
    matmul = _best(store, plain, machine)
    if matmul is not None:
        choices = {OF_MATMULS.get(name, name): value for name, value in matmul.record.candidate.choices}
        candidate = Candidate.of(PACKED if facts_of(problem.fusion).weights > 0 else DIRECT, choices)
        yield from _projected(matmul, candidate, problem, machine, SAME_CONTRACTION)


def _of_nearest(store: "Store", machine: Machine, problem: Problem) -> Iterator[FusionSchedule]:
    task = TuningTask(problem, machine, threads=1)

    def task_of(run: Run) -> TuningTask:
        return TuningTask(run.settings.problem, run.machine, threads=1)

    def is_near(run: Run) -> bool:
        octaves = distance(task, task_of(run))
        return octaves is not None and octaves <= NEAR_OCTAVES

    runs = store.matching_runs(RunQuery(_task(problem, machine)))
    near = [run for run in runs if run.settings.problem.fusion != problem.fusion and is_near(run)]
    for run in nearest_first(task, near, task_of)[:NEAREST_RUNS]:
        trial = _best_of_run(store, run)
        if trial is not None:
            schedules = tuple(_projected(trial, trial.record.candidate, problem, machine, NEAREST))
            if schedules:
                yield from schedules
                return


def _task(problem: Problem, machine: Machine, **narrower: str) -> TaskQuery:
    return TaskQuery(operation=problem.operation, target=CPU, machine=machine.name, threads=1, **narrower)


def _best(store: "Store", task: TaskQuery, machine: Machine) -> StoredTrial | None:
    asked = replace(task, target=CPU, machine=machine.name, threads=1)
    found = best_results(store, TrialQuery(asked), is_measured_there)
    return min(found.values(), key=lambda each: each.rank).best if found else None


def _best_of_run(store: "Store", run: Run) -> StoredTrial | None:
    found = best_results(store, TrialQuery(run=run.id), is_measured_there)
    return next((each.best for each in found.values()), None)


def _is_same(other: Problem, problem: Problem) -> bool:
    pair = [facts_of(each.fusion) for each in (problem, other)]
    ours, theirs = [(each.loops, each.contractions, each.weights, each.dimensions) for each in pair]
    return other.fusion != problem.fusion and ours == theirs


def _projected(
    trial: StoredTrial, candidate: Candidate, problem: Problem, machine: Machine, origin: str
) -> Iterator[FusionSchedule]:
    projected = projected_script(candidate, problem, machine)
    if projected is not None:
        yield FusionSchedule(projected[0], projected[1].text, origin, trial.id)
