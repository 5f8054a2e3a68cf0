"""Converts a user's request to the settings of a run, and checks requests and new limits of stored runs.

``planned_settings`` makes the settings; functions named ``require_...`` raise UsageError for what no run can
have. ``RunLimit`` is a new limit of a run that is resumed.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.core.machine import Machine, Processors
from tuner.core.problem import Problem
from tuner.core.problem_text import tune_command
from tuner.core.processors import require_instructions
from tuner.core.queries import TaskQuery
from tuner.core.requests import TIMED_SAMPLER, RunRequest, require_budget, require_number
from tuner.core.runs import Run, RunSettings
from tuner.core.trials import Proposal
from tuner.mlir.cpu.needed_instructions import script_instructions
from tuner.payload.reference import reference_bytes
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.shipped import PLAIN_SUFFIX
from tuner.targets.backends import Backends, require_runs_here, resolve_target

GIB = 2**30
WORKER_BYTES = 192 * 2**20  # of a compile worker: the bindings and one module, as measured
UNTIMED_SAMPLERS = ("random", "exhaustive")  # which need no times; the first is the default


def require_memory(problem: Problem, machine: Machine) -> None:
    """Raises UsageError unless a problem's arrays and their float64 reference fit into the machine's memory.

    A machine of unknown memory (0 bytes) passes.
    """
    needed = reference_bytes(problem)
    if needed <= machine.memory_bytes or machine.memory_bytes == 0:  # 0: unknown, of a recorded machine
        return
    raise UsageError(
        f"shape {problem.shape} {problem.dtype}: its arrays and their float64 reference need "
        f"{needed / GIB:.1f} GiB, available {machine.memory_bytes / GIB:.1f} GiB"
    )


def require_workers(workers: int, machine: Machine) -> None:
    """Raises UsageError unless the compile workers, WORKER_BYTES each, fit into the machine's memory.

    A machine of unknown memory (0 bytes) passes.
    """
    most = machine.memory_bytes // WORKER_BYTES
    if workers > most > 0:
        raise UsageError(
            f"workers: found {workers}, allowed 1 to {most}: each is a process that needs memory"
        )


def require_threads(threads: int, machine: Machine, processors: Processors) -> None:
    """Raises UsageError if a CPU has fewer processors than a kernel has threads.

    Two threads that wait in a loop on one processor would block each other. ``machine``: the target's; a GPU,
    and a machine of unknown cores, pass. ``processors``: those of this machine, which verifies.
    """
    if machine.chip or not machine.logical_cores:
        return
    if threads > processors.usable and processors.limit:
        raise UsageError(f"threads: found {threads}, allowed up to {processors.usable}: {processors.limit}")
    most = machine.logical_cores
    if threads > most:
        raise UsageError(f"threads: found {threads}, allowed up to {most}, the processors of {machine.name}")
    if threads > processors.usable:
        allowed = f"{processors.usable}, the processors of this machine, which verifies"
        raise UsageError(f"threads: found {threads}, allowed up to {allowed}")


def require_offered(backends: Backends, target: TargetName, needs: Collection[str], what: str) -> None:
    """Raises UsageError if a target's machine lacks an instruction set of ``needs``, such as "amx-bf16".

    ``what``: what needs them; the message begins with it.
    """
    if needs:
        require_instructions(backends.target(target).machine(target), needs, what)


def require_scripts_offered(backends: Backends, settings: RunSettings) -> None:
    """Raises UsageError if a user's plain script needs instruction sets that the target's machine lacks.

    Templates are not checked here: they may choose their ops by the machine.
    """
    from tuner.space.scripts.strategy import load_chosen  # not at start-up

    if not settings.target.has_machine:
        return
    for chosen in settings.strategies:
        if chosen.path is not None and chosen.path.name.endswith(PLAIN_SUFFIX):
            script = load_chosen(chosen).text
            needs = script_instructions(script, settings.problem.multiplied_dtype)
            require_offered(backends, settings.target, needs, chosen.path.name)


@dataclass(frozen=True)
class RunLimit:
    """The limit of a run's search: this number of trials or seconds, whichever is reached first."""

    trials: int | None = None
    budget_s: float | None = None

    def __post_init__(self) -> None:
        require_number("trials", self.trials, 1)
        require_budget(self.budget_s)

    @classmethod
    def of(cls, trials: int | None, budget_s: float | None) -> "RunLimit | None":
        """Returns the limit; None if both arguments are None. Raises UsageError for an invalid argument."""
        if trials is None and budget_s is None:
            return None
        return cls(trials, budget_s)

    def applied(self, settings: RunSettings) -> RunSettings:
        return replace(settings, trials=self.trials, budget_s=self.budget_s)


def searched_s(run: Run) -> float:
    """Returns the seconds of its budget that a run has used.

    For a finished run the seconds of its search, without the final re-measurement.
    """
    if run.status == "done" and run.search_s is not None:
        return run.search_s
    return run.seconds or 0.0


def require_whole(run: Run, stored: tuple[Proposal, ...]) -> None:
    """Raises UsageError for a run of which trials were pruned: its search cannot be repeated."""
    if [proposal.number for proposal in stored] != [*range(len(stored))]:
        raise UsageError(f"run {run.id}: some of its trials were pruned; start a new run")


def require_longer(run: Run, stored: tuple[Proposal, ...], limit: RunLimit) -> None:
    """Raises UsageError if ``run`` already has more trials or seconds than ``limit`` allows."""
    require_more(f"run {run.id}", len(stored), searched_s(run), limit)


def require_more(name: str, trials: int, used_s: float, limit: RunLimit) -> None:
    """Raises UsageError if ``trials`` or ``used_s`` is already more than ``limit`` allows.

    ``name``: the run or campaign, for the message.
    """
    if limit.trials is not None and limit.trials < trials:
        raise UsageError(f"trials: found {limit.trials}, but {name} has {trials} trials already")
    if limit.budget_s is not None and limit.budget_s < used_s:
        raise UsageError(
            f"budget: found {limit.budget_s:g} s, but {name} has searched for {used_s:.1f} s already"
        )


def require_same_rows(run: Run, feasible: FeasibleSet, stored: tuple[Proposal, ...]) -> None:
    """Raises UsageError unless the index of each stored proposal still is the same candidate."""
    for proposal in stored:
        if proposal.row >= feasible.rows or feasible.candidate(proposal.row) != proposal.candidate:
            raise UsageError(
                f"run {run.id}: row {proposal.row} of its search space is no longer "
                f"{proposal.candidate.text}; start a new run"
            )


def run_settings(request: RunRequest, backends: Backends) -> RunSettings:
    """Returns the complete settings of a run for a request.

    Raises UsageError for a request with a wrong value, and where the target's code cannot run here.
    """
    settings = planned_settings(request, backends)
    require_runs_here(settings.target, backends, tune_command(TaskQuery.of(settings.problem)))
    require_scripts_offered(backends, settings)
    return settings


def planned_settings(request: RunRequest, backends: Backends) -> RunSettings:
    """Returns the complete settings for a request, even if its candidates cannot run on this machine.

    Raises UsageError for a request with a wrong value.
    """
    from tuner.space.file.reading import load_space_file  # not at start-up
    from tuner.space.file.seeds import seeds_of_files  # not at start-up
    from tuner.space.file.yaml import default_space_file  # not at start-up
    from tuner.space.scripts.choice import choose, with_seed_scripts  # not at start-up

    workers = request.workers_on(backends.machine())
    if not TargetName.parse(request.target).has_machine:
        from tuner.targets.replay import replay_settings  # loads numpy

        return replay_settings(request, workers)
    space_file = load_space_file(Path(request.space or default_space_file()))
    target = resolve_target(request.target, backends, request.chip)
    known = backends.target(target)
    known.require_types(request.problem, target)
    known.require_baseline(request.baseline, request.problem)
    chosen = choose(
        request.strategy_text, space_file, reopens=request.reopen, libraries=request.library_paths
    )
    strategies, seeds = with_seed_scripts(chosen, seeds_of_files(request.seeds), space_file)
    return RunSettings(
        problem=request.problem,
        target=target,
        threads=request.threads,
        strategies=strategies,
        space_yaml=space_file.text,
        space_name=space_file.name,
        sampler=_sampler(request.sampler, known.status().is_timed, target),
        seed=request.seed,
        trials=request.trials_limit,
        budget_s=request.budget_s,
        workers=workers,
        fresh=request.fresh,
        warm_start=request.warm_start and not request.fresh,
        warm_files=request.warm_paths,
        seeds=seeds,
        baseline_library=request.baseline,
    )


def _sampler(name: str | None, is_timed: bool, target: TargetName) -> str:
    if is_timed:
        if name is None:
            return TIMED_SAMPLER
        return name
    if name is not None and name not in UNTIMED_SAMPLERS:
        raise UsageError(
            f"sampler: found {name!r}, allowed {', '.join(UNTIMED_SAMPLERS)}: "
            f"target {target.kind} gives no times to learn from"
        )
    if name is None:
        return UNTIMED_SAMPLERS[0]
    return name
