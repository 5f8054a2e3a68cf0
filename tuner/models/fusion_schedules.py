"""The schedules that stored trials suggest for a fusion, and for a matmul of a program on a device.

Those for a fusion on the CPU are, in this order:

1. the best of the same fusion, or of the matmul that it is, with its epilogue. If it has a weight, one that
   packs it as untuned programs do is preferred if it takes at most 3 % longer: then they share the memory;
2. the best of the same contraction with another epilogue, or of the matmul that packs B at each call;
3. the best of the fusion of the same kind with the nearest sizes, if these are near.

Only trials that were timed on the same class of machine count, those on the nearest number of threads first:
the code is right for any number.

No program is to be slower for having been tuned. So a fusion of a tuned program has a schedule of its own or
its initial configuration, as the program was timed with; trials that made their program no faster do not
count; and a fusion lends only what was faster than its own initial configuration.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tuner.analysis.warm_start import TuningTask, distance, nearest_first
from tuner.core.candidate import Candidate, Value
from tuner.core.dtypes import narrow_output
from tuner.core.machine import Machine
from tuner.core.problem import CACHES, MATMUL, Problem
from tuner.core.problem_classes import MatmulProblem, TextProblem
from tuner.core.programs import NEAREST, SAME_CONTRACTION, TUNED, FusionSchedule
from tuner.core.quantization import CONSTANT
from tuner.core.queries import RunQuery, TaskQuery, TrialQuery
from tuner.core.runs import Run
from tuner.core.trials import StoredTrial
from tuner.gpu.payload.scratch import Scratch, scratch_in
from tuner.results.best_trials import any_trial, best_results, is_measured_there
from tuner.space.scripts.choice import projected_script
from tuner.tuning.pretuned import initial_configuration

if TYPE_CHECKING:
    from tuner.db.store import Store
CPU = "cpu"
NO_EPILOGUE = "none"
NEAREST_RUNS = 3  # so many runs are asked for a configuration: the nearest run may have none that fits
# Farther fusions are not asked: the best tiles of a convolution 4.6 octaves smaller took 1.7 times as long as
# the initial configuration (docs/decisions/fusions.md).
NEAR_OCTAVES = 3.0
PACKED = "contraction_cpu_packed"
# Programs of a process share a weight that they pack alike. So a schedule that packs as the initial
# configuration does, for any number of rows, is taken where its time is at most this times the best.
PRICE_OF_SHARING = 1.03
PANELS = ("panel", "tile_n", "tiles_n")  # knobs that say how wide the panels of a packed weight are
OF_MATMULS = {"tile_n": "panel"}  # knobs of the CPU's matmul strategies with another name in these two


def fusion_schedules(
    store: "Store", machine: Machine, problem: TextProblem, threads: int, undecided: int = 0
) -> Iterator[FusionSchedule]:
    """Yields schedules for a fusion that is divided among ``threads``, the best first.

    The schedules are those of the database's trials that were timed on ``machine``. ``undecided``: id of the
    campaign whose program is timed now; its trials count although the program was no faster before.
    """
    stored = _Trials(store, machine, threads, undecided)
    tuned = stored.best_of_fusion(problem) or stored.best_of_constant(problem)
    if tuned is not None:
        yield FusionSchedule(tuned.record.candidate, tuned.script_text, TUNED, tuned.id)
    else:
        yield from _of_matmul(stored, problem)
    if stored.is_of_tuned_program(problem):
        return
    if problem.is_contraction:
        yield from _of_same_contraction(stored, problem)
    yield from _of_nearest(stored, problem)


def matmul_schedules(
    store: "Store", timed_on: TaskQuery, machine: Machine, problem: Problem, _threads: int
) -> Iterator[FusionSchedule]:
    """Yields schedules for a matmul of a program on a device, the best first.

    First the best timed trial of this matmul. Then, for a matmul with an epilogue, the configuration of the
    best timed trial of the same matmul without an epilogue, if its kernel can apply one: a kernel that
    neither divides the sum over K nor packs an operand.

    Args:
        store: the database.
        timed_on: the target, and the machine if it matters, whose times count.
        machine: the machine to compile for.
        problem: the matmul; trials of another type, such as tf32 for f32, are not used.
        _threads: not used; ``fusion_schedules`` takes it, too.
    """
    best = _best_timed(store, timed_on, problem)
    if best is not None:
        yield FusionSchedule(best.record.candidate, best.script_text, TUNED, best.id)
    if problem.epilogue == NO_EPILOGUE:
        return
    plain = _best_timed(store, timed_on, replace(problem, epilogue=NO_EPILOGUE))
    if plain is not None and scratch_in(plain.script_text, problem) == Scratch():
        yield from _projected(plain, plain.record.candidate, problem, machine, SAME_CONTRACTION)


def _best_timed(store: "Store", timed_on: TaskQuery, problem: Problem) -> StoredTrial | None:
    task = TaskQuery.of(problem, target=timed_on.target, machine=timed_on.machine)
    results = best_results(store, TrialQuery(task), is_measured_there)
    if not results:
        return None
    return min(results.values(), key=attrgetter("rank")).best


@dataclass(frozen=True)
class _Trials:
    """The trials of a database on one machine, for fusions that are divided among some threads."""

    store: "Store"
    machine: Machine
    threads: int
    undecided: int  # id of a campaign whose trials count in any case; 0: none

    def best(
        self, task: TaskQuery, is_wanted: Callable[[StoredTrial], bool] = any_trial
    ) -> StoredTrial | None:
        query = replace(task, target=CPU, machine=self.machine.name)

        is_set_aside = cache(lambda run: self.is_set_aside(self.store.run(run)))

        def counts(trial: StoredTrial) -> bool:
            return is_wanted(trial) and not is_set_aside(trial.run)

        best_by_group = best_results(self.store, TrialQuery(query), is_measured_there, counts)
        ranked = ((self.octaves(group.threads), tuned.rank, tuned) for group, tuned in best_by_group.items())
        if best_by_group:
            return min(ranked, key=lambda ranks: ranks[:2])[2].best
        return None

    def best_of_fusion(self, problem: TextProblem) -> StoredTrial | None:
        """Returns the best trial of a fusion: of its own cache state if there is one, else of another.

        Else None.
        """
        for task in _tasks(problem):
            trial = self.best_that_shares(task, problem)
            if trial is not None:
                return trial
        return None

    def best_that_shares(self, task: TaskQuery, problem: TextProblem) -> StoredTrial | None:
        """Returns the best trial of a task.

        For a fusion with weights, one that packs weights as untuned programs do. That is, as the initial
        configuration packs them, if such a trial takes at most ``PRICE_OF_SHARING`` times as long as the
        best. None if the task has no trial.
        """
        best = self.best(task)
        if best is None or best.best_s is None or not problem.facts.weights:
            return best
        initial = initial_configuration(problem, self.machine)
        if initial is None:
            return best
        packing = _packing(initial[0])
        limit_s = PRICE_OF_SHARING * best.best_s

        def shares(trial: StoredTrial) -> bool:
            is_alike = trial.threads == best.threads and _packing(trial.record.candidate) == packing
            return is_alike and trial.best_s is not None and trial.best_s <= limit_s

        return self.best(task, shares) or best

    def best_of_constant(self, problem: TextProblem) -> StoredTrial | None:
        """Returns the best trial of the fusion as a matmul by a constant B with an epilogue.

        None if the fusion is not such a matmul, or there is no trial.
        """
        matmul = problem.scheduled_as
        if matmul.weights != CONSTANT:
            return None
        task = TaskQuery(shape=matmul.shape, dtype=matmul.dtype, weights=CONSTANT, epilogue=matmul.epilogue)
        return self.best(replace(task, output=matmul.output))

    def best_of_matmul(self, problem: TextProblem, **narrower: Any) -> StoredTrial | None:
        """Returns the best trial of the fusion as a matmul of two activations, on one thread.

        None for a program of several threads, whose fusions cannot use a matmul's thread partitions; for a
        fusion that is not such a matmul; and if there is no trial. ``narrower``: further conditions on the
        trial's task.
        """
        matmul = problem.scheduled_as
        if not isinstance(matmul, MatmulProblem) or self.threads > 1:
            return None
        task = TaskQuery(MATMUL, matmul.shape, matmul.dtype, matmul.layout, threads=1)
        return self.best(replace(task, **narrower))

    def is_of_tuned_program(self, problem: Problem) -> bool:
        """Returns whether a campaign tuned a program that has the fusion."""
        for task in _tasks(problem):
            query = RunQuery(replace(task, target=CPU, machine=self.machine.name))
            for run in self.store.matching_runs(query):
                if run.campaign is not None:
                    return True
        return False

    def is_set_aside(self, run: Run) -> bool:
        """Returns whether the program of a run was compared, and keeps the initial configuration."""
        if run.campaign is None or run.campaign.campaign == self.undecided:
            return False
        result = self.store.program_result(run.campaign.campaign)
        return result is not None and not result.uses(run.campaign.name)

    def best_of_run(self, run: Run) -> StoredTrial | None:
        """Returns the best trial of a run, which another fusion may take.

        None without a trial, if the best one has the initial configuration, or if its program kept that one.
        """
        if self.is_set_aside(run):
            return None
        best_by_group = best_results(self.store, TrialQuery(run=run.id), is_measured_there)
        best = next((tuned.best for tuned in best_by_group.values()), None)
        initial = initial_configuration(run.settings.problem, self.machine)
        if best is None or (initial is not None and best.record.candidate == initial[0]):
            return None
        return best

    def runs(self, problem: Problem, **narrower: Any) -> list[Run]:
        """Returns the runs of other fusions of one kind, those of the nearest number of threads first."""
        task = TaskQuery(operation=problem.operation, target=CPU, machine=self.machine.name, **narrower)
        runs = self.store.matching_runs(RunQuery(task))
        others = [run for run in runs if run.settings.problem.computed != problem.computed]
        return sorted(others, key=lambda run: self.octaves(run.settings.threads))

    def octaves(self, threads: int) -> float:
        return abs(math.log2(max(threads, 1) / self.threads))


def _tasks(problem: Problem) -> tuple[TaskQuery, ...]:
    """Returns the conditions for a fusion, timed with its own state of the caches, then with each other."""
    states = dict.fromkeys((problem.cache, *CACHES))
    return tuple(TaskQuery.of(replace(problem, cache=state)) for state in states)


def _packing(candidate: Candidate) -> tuple[str, Value | None]:
    """Returns the strategy and the width of its panels, which decide how a weight is packed."""
    for name, value in candidate.choices:
        if name in PANELS:
            return candidate.strategy, value
    return candidate.strategy, None


def _of_matmul(stored: _Trials, problem: TextProblem) -> Iterator[FusionSchedule]:
    matmul = problem.scheduled_as
    trial = stored.best_of_matmul(problem, epilogue=matmul.epilogue, output=matmul.output)
    if trial is not None:
        yield from _projected(trial, trial.record.candidate, problem, stored.machine, TUNED)


def _of_same_contraction(stored: _Trials, problem: TextProblem) -> Iterator[FusionSchedule]:
    runs = stored.runs(problem, shape=problem.shape, dtype=problem.dtype)
    same = [run for run in runs if _is_same(run.settings.problem, problem)]
    trials = [
        (stored.octaves(run.settings.threads), best) for run in same if (best := stored.best_of_run(run))
    ]
    if trials:
        _, trial = min(trials, key=lambda pair: (pair[0], pair[1].best_s, pair[1].id))
        yield from _projected(trial, trial.record.candidate, problem, stored.machine, SAME_CONTRACTION)
        return
    of_other_epilogue = stored.best_of_matmul(problem)
    if of_other_epilogue is not None:
        yield from _projected(
            of_other_epilogue, of_other_epilogue.record.candidate, problem, stored.machine, SAME_CONTRACTION
        )
    if problem.facts.layout or not problem.facts.epilogue:
        return
    task = TaskQuery(operation=MATMUL, shape=problem.shape, dtype=problem.dtype, layout="nn")
    epilogue = problem.facts.epilogue
    output = _output_of(problem)
    # those of several threads have partitions, which a fusion has not
    matmul = stored.best(replace(task, epilogue=epilogue, output=output, threads=1))
    if matmul is not None:
        choices = {OF_MATMULS.get(name, name): value for name, value in matmul.record.candidate.choices}
        candidate = Candidate.of(PACKED, choices)
        yield from _projected(matmul, candidate, problem, stored.machine, SAME_CONTRACTION)


def _output_of(problem: TextProblem) -> str:
    """Returns ``Problem.output`` of the matmul that a fusion is."""
    return narrow_output(problem.dtype, problem.facts.output)


def _of_nearest(stored: _Trials, problem: Problem) -> Iterator[FusionSchedule]:
    task = TuningTask(problem, stored.machine, threads=1)

    def task_of(run: Run) -> TuningTask:
        return TuningTask(run.settings.problem, run.machine, threads=1)

    def is_near(run: Run) -> bool:
        octaves = distance(task, task_of(run))
        return octaves is not None and octaves <= NEAR_OCTAVES

    near = list(filter(is_near, stored.runs(problem)))
    for run in nearest_first(task, near, task_of)[:NEAREST_RUNS]:
        trial = stored.best_of_run(run)
        if trial is not None:
            schedules = tuple(_projected(trial, trial.record.candidate, problem, stored.machine, NEAREST))
            if schedules:
                yield from schedules
                return


def _is_same(other: Problem, problem: TextProblem) -> bool:
    if not isinstance(other, TextProblem):
        return False
    ours = problem.facts
    theirs = other.facts
    names = ("loops", "contractions", "weights", "dimensions", "layout")
    return all(getattr(ours, name) == getattr(theirs, name) for name in names)


def _projected(
    trial: StoredTrial, candidate: Candidate, problem: Problem, machine: Machine, origin: str
) -> Iterator[FusionSchedule]:
    projected = projected_script(candidate, problem, machine)
    if projected is not None:
        yield FusionSchedule(projected[0], projected[1].text, origin, trial.id)
