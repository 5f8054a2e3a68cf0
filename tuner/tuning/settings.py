"""Converts a user's request to the settings that a run is stored with."""

from pathlib import Path

from tuner.core.errors import UsageError
from tuner.core.runs import RunSettings, TaskQuery
from tuner.core.target_name import TargetName
from tuner.tuning.advice import tune_command
from tuner.tuning.composition import Composition
from tuner.tuning.needs_check import require_scripts_offered
from tuner.tuning.run_request import TIMED_SAMPLER, RunRequest
from tuner.tuning.target_choice import require_runs_here, resolve_target

UNTIMED_SAMPLERS = ("random", "exhaustive")  # which need no times; the first is the default


def run_settings(request: RunRequest, composition: Composition) -> RunSettings:
    """Returns the complete settings of a requested run on this machine.

    Raises UsageError for an invalid request, where candidates of the target cannot run here, and for a user's
    script with instructions that the target's machine does not have.
    """
    settings = planned_settings(request, composition)
    require_runs_here(settings.target, composition, tune_command(TaskQuery.of(settings.problem)))
    require_scripts_offered(composition, settings)
    return settings


def planned_settings(request: RunRequest, composition: Composition) -> RunSettings:
    """Returns the complete settings of a requested run, even if its candidates cannot run on this machine.

    Target, sampler, strategies and number of workers are filled in. Raises UsageError for an invalid request,
    and for a target that can neither run nor compile here.
    """
    from tuner.scripts.chosen import choose
    from tuner.space.file.reading import load_space_file
    from tuner.space.file.shipped import default_space_file

    workers = request.workers_on(composition.machine())
    if not TargetName.parse(request.target).has_machine:
        return composition.recordings.settings(request, workers)
    space_file = load_space_file(Path(request.space or default_space_file()))
    target = resolve_target(request.target, composition, request.chip)
    kind = composition.kind(target)
    kind.require_types(request.problem, target)
    kind.require_baseline(request.baseline, request.problem)
    return RunSettings(
        problem=request.problem,
        target=target,
        threads=request.threads,
        strategies=choose(request.strategy_text, space_file),
        space_yaml=space_file.text,
        space_name=space_file.name,
        sampler=_sampler(request.sampler, kind.status().is_timed, target),
        seed=request.seed,
        trials=request.trials_limit,
        budget_s=request.budget_s,
        workers=workers,
        fresh=request.fresh,
        warm_start=request.warm_start and not request.fresh,
        warm_files=request.warm_paths,
        baseline_library=request.baseline,
    )


def _sampler(name: str | None, is_timed: bool, target: TargetName) -> str:
    """Returns the sampler's name, by default a suitable one.

    Raises UsageError for a sampler that needs times on an untimed target.
    """
    if is_timed:
        return TIMED_SAMPLER if name is None else name
    if name is not None and name not in UNTIMED_SAMPLERS:
        raise UsageError(
            f"sampler: found {name!r}, allowed {', '.join(UNTIMED_SAMPLERS)}: "
            f"target {target.kind} gives no times to learn from"
        )
    return UNTIMED_SAMPLERS[0] if name is None else name
