"""The fusions of a program that can be tuned, and the schedules that stored trials suggest for them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tuner.analysis.warm_start import TuningTask, distance, nearest_first
from tuner.core import fusions
from tuner.core.candidate import Candidate
from tuner.core.dtypes import narrow_output
from tuner.core.errors import CandidateError, Refusal, UsageError
from tuner.core.machine import Machine
from tuner.core.problem import CACHES, MATMUL, NamedProblem, Problem, TextProblem, distinct_problems
from tuner.core.programs import NEAREST, SAME_CONTRACTION, TUNED, FusionSchedule
from tuner.core.quantization import CONSTANT
from tuner.core.queries import RunQuery, TaskQuery, TrialQuery
from tuner.core.runs import Run
from tuner.core.trials import StoredTrial
from tuner.results.best_trials import best_results, is_measured_there
from tuner.space.scripts.choice import first_configuration, projected_script, why_no_strategy

if TYPE_CHECKING:
    from tuner.db.store import Store

CPU = "cpu"
NEAREST_RUNS = 3  # so many runs are asked for a configuration: the nearest run may have none that fits
# Farther fusions are not asked: the best tiles of a convolution 4.6 octaves smaller took 1.7 times as long as
# the initial configuration (docs/decisions/fusions.md).
NEAR_OCTAVES = 3.0
PACKED = "contraction_cpu_packed"
DIRECT = "contraction_cpu_direct"
OF_MATMULS = {"tile_n": "panel"}  # knobs of the CPU's matmul strategies with another name in these two


@dataclass(frozen=True)
class TunableFusions:
    """The distinct fusions of a program as tuning problems, with their names in the program: "g0", "g1"."""

    problems: tuple[NamedProblem, ...] = ()
    left_out: tuple[str, ...] = ()  # a line for each fusion that is not tuned
    why_none: str = ""  # why the program is not compiled as fusions
    divided: tuple[Problem, ...] = ()  # those that the program divides among its threads; others run on one
    seconds: float = 0.0  # that it took to find them

    def threads_of(self, problem: Problem, threads: int) -> int:
        """Returns how many of a program's ``threads`` run the fusion ``problem``: all of them, or 1."""
        if problem in self.divided:
            return threads
        return 1


def tunable_fusions(
    text: str, entry: str | None, cache: str, machine: Machine, threads: int = 1
) -> TunableFusions:
    """Returns the fusions of a payload that a strategy supports and whose results can be verified.

    ``entry`` None: ``main``, or the only public function; ``cache``: one of ``tuner.core.problem.CACHES``.
    Raises CandidateError(BIND) for text that does not parse.
    """
    from tuner.programs.fusion_compiler import threads_of  # loads MLIR
    from tuner.programs.fusions.payload import NotFused  # loads MLIR
    from tuner.programs.fusions.pipeline import fuse_program  # loads MLIR

    formed = fuse_program(text, entry, multiplies_pairs=machine.multiplies_pairs)
    if isinstance(formed, NotFused):
        return TunableFusions(why_none=formed.reason)
    known: dict[tuple[str, str], TextProblem | Refusal] = {}  # by kind and text of a fusion
    problems: list[NamedProblem] = []
    left_out: list[str] = []
    divided: dict[Problem, None] = {}
    for number, fusion in enumerate(formed.program.fusions):
        key = (fusion.kind, fusion.text)
        if key not in known:
            known[key] = _problem_of(fusion, machine)
        problem = known[key]
        name = f"g{number}"
        if isinstance(problem, Problem):
            problems.append(NamedProblem(replace(problem, cache=cache), name))
            if threads_of(fusion, problem, threads) > 1:
                divided[problems[-1].problem] = None
        else:
            left_out.append(f"{name} {', '.join(dict.fromkeys(fusion.ops))}: {problem.text}")
    return TunableFusions(distinct_problems(tuple(problems)), tuple(left_out), divided=tuple(divided))


def _problem_of(fusion: fusions.Fusion, machine: Machine) -> TextProblem | Refusal:
    from tuner.mlir.fusions import fusion_problem  # loads MLIR
    from tuner.mlir.reference.fusion_reference import draw_inputs  # loads MLIR

    if fusion.kind == fusions.LOOPS:
        return Refusal(fusion.reason)
    try:
        problem = fusion_problem(fusion)
        if first_configuration(problem, machine) is None:
            return Refusal(why_no_strategy(problem, machine))
        draw_inputs(problem.text, np.random.default_rng(0))  # raises where results cannot be verified
    except (UsageError, CandidateError) as error:
        return Refusal(str(error))
    return problem


# Schedules that stored trials suggest for a fusion.
#
# First the best schedule of the fusion itself, or of the matmul by a constant B with its epilogue; then of
# the same contraction with another epilogue, or of the matmul with this one that packs B at each call; then
# of the fusion of the same kind with the nearest sizes, if these are
# near. Only trials that were timed on the same class of machine count, and those on the nearest number of
# threads first: the code is as right on any other.


def fusion_schedules(
    store: "Store", machine: Machine, problem: TextProblem, threads: int
) -> Iterator[FusionSchedule]:
    """Yields schedules for a fusion that is divided among ``threads``, the best first.

    The schedules are those of the database's trials that were timed on ``machine``.
    """
    there = _Trials(store, machine, threads)
    states = (problem.cache, *(cache for cache in CACHES if cache != problem.cache))
    problems = tuple(replace(problem, cache=state) for state in states)
    tuned = next((found for cached in problems if (found := there.best(TaskQuery.of(cached)))), None)
    if tuned is None:
        tuned = there.best_of_constant(problem)
    if tuned is not None:
        yield FusionSchedule(tuned.record.candidate, tuned.script_text, TUNED, tuned.id)
    if problem.is_contraction:
        yield from _of_same_contraction(there, problem)
    yield from _of_nearest(there, problem)


@dataclass(frozen=True)
class _Trials:
    """The trials of a database on one machine, for fusions that are divided among some threads."""

    store: "Store"
    machine: Machine
    threads: int

    def best(self, task: TaskQuery) -> StoredTrial | None:
        query = replace(task, target=CPU, machine=self.machine.name)
        best_by_group = best_results(self.store, TrialQuery(query), is_measured_there)
        ranked = ((self.octaves(group.threads), tuned.rank, tuned) for group, tuned in best_by_group.items())
        if best_by_group:
            return min(ranked, key=lambda entry: entry[:2])[2].best
        return None

    def best_of_constant(self, problem: TextProblem) -> StoredTrial | None:
        """Returns the best trial of the matmul by a constant B with the epilogue of the fusion."""
        matmul = problem.scheduled_as
        if matmul.weights != CONSTANT:
            return None
        task = TaskQuery(shape=matmul.shape, dtype=matmul.dtype, weights=CONSTANT, epilogue=matmul.epilogue)
        return self.best(replace(task, output=matmul.output))

    def best_of_run(self, run: Run) -> StoredTrial | None:
        found = best_results(self.store, TrialQuery(run=run.id), is_measured_there)
        return next((tuned.best for tuned in found.values()), None)

    def runs(self, problem: Problem, **narrower: Any) -> list[Run]:
        """Returns the runs of other fusions of the kind, those of the nearest number of threads first."""
        task = TaskQuery(operation=problem.operation, target=CPU, machine=self.machine.name, **narrower)
        runs = self.store.matching_runs(RunQuery(task))
        others = [run for run in runs if run.settings.problem.computed != problem.computed]
        return sorted(others, key=lambda run: self.octaves(run.settings.threads))

    def octaves(self, threads: int) -> float:
        return abs(math.log2(max(threads, 1) / self.threads))


def _of_same_contraction(there: _Trials, problem: TextProblem) -> Iterator[FusionSchedule]:
    runs = there.runs(problem, shape=problem.shape, dtype=problem.dtype)
    same = [run for run in runs if _is_same(run.settings.problem, problem)]
    trials = [(there.octaves(run.settings.threads), best) for run in same if (best := there.best_of_run(run))]
    if trials:
        _, trial = min(trials, key=lambda pair: (pair[0], pair[1].best_s, pair[1].id))
        yield from _projected(trial, trial.record.candidate, problem, there.machine, SAME_CONTRACTION)
        return
    if not problem.facts.epilogue:
        return
    task = TaskQuery(operation=MATMUL, shape=problem.shape, dtype=problem.dtype, layout="nn")
    epilogue = problem.facts.epilogue
    output = _output_of(problem)
    # those of several threads have partitions, which a fusion has not
    matmul = there.best(replace(task, epilogue=epilogue, output=output, threads=1))
    if matmul is not None:
        choices = {OF_MATMULS.get(name, name): value for name, value in matmul.record.candidate.choices}
        candidate = Candidate.of(PACKED if problem.facts.weights > 0 else DIRECT, choices)
        yield from _projected(matmul, candidate, problem, there.machine, SAME_CONTRACTION)


def _output_of(problem: TextProblem) -> str:
    """Returns ``Problem.output`` of the matmul that a fusion is."""
    return narrow_output(problem.dtype, problem.facts.output)


def _of_nearest(there: _Trials, problem: Problem) -> Iterator[FusionSchedule]:
    task = TuningTask(problem, there.machine, threads=1)

    def task_of(run: Run) -> TuningTask:
        return TuningTask(run.settings.problem, run.machine, threads=1)

    def is_near(run: Run) -> bool:
        octaves = distance(task, task_of(run))
        return octaves is not None and octaves <= NEAR_OCTAVES

    near = list(filter(is_near, there.runs(problem)))
    for run in nearest_first(task, near, task_of)[:NEAREST_RUNS]:
        trial = there.best_of_run(run)
        if trial is not None:
            schedules = tuple(_projected(trial, trial.record.candidate, problem, there.machine, NEAREST))
            if schedules:
                yield from schedules
                return


def _is_same(other: Problem, problem: TextProblem) -> bool:
    if not isinstance(other, TextProblem):
        return False
    ours = problem.facts
    theirs = other.facts
    names = ("loops", "contractions", "weights", "dimensions")
    return all(getattr(ours, name) == getattr(theirs, name) for name in names)


def _projected(
    trial: StoredTrial, candidate: Candidate, problem: Problem, machine: Machine, origin: str
) -> Iterator[FusionSchedule]:
    projected = projected_script(candidate, problem, machine)
    if projected is not None:
        yield FusionSchedule(projected[0], projected[1].text, origin, trial.id)
