"""What a user asks of a run, made the settings that it is stored with."""

from pathlib import Path

from tuner.core.errors import UsageError
from tuner.core.runs import RunSettings, TaskQuery
from tuner.core.target_name import TargetName
from tuner.tuning.advice import tune_command
from tuner.tuning.composition import Composition
from tuner.tuning.run_request import TIMED_SAMPLER, RunRequest
from tuner.tuning.target_choice import require_runs_here, resolve_target

UNTIMED_SAMPLERS = ("random", "exhaustive")  # that need no times; the default is the first


def run_settings(request: RunRequest, composition: Composition) -> RunSettings:
    """Returns settings of a run on this machine. Raises UsageError where candidates could not run here."""
    settings = planned_settings(request, composition)
    require_runs_here(settings.target, composition, tune_command(TaskQuery.of(settings.problem)))
    return settings


def planned_settings(request: RunRequest, composition: Composition) -> RunSettings:
    """Returns settings with what the machine and its targets decide. Raises UsageError.

    Candidates of the target may be unable to run here.
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
    return RunSettings(
        problem=request.problem,
        target=target,
        threads=request.threads,
        strategies=choose(request.strategy_text, space_file),
        space_yaml=space_file.text,
        sampler=_sampler(request.sampler, kind.status().is_timed, target),
        seed=request.seed,
        trials=request.trials_limit,
        budget_s=request.budget_s,
        workers=workers,
        fresh=request.fresh,
        warm_start=request.warm_start and not request.fresh,
        warm_files=request.warm_paths,
    )


def _sampler(word: str | None, is_timed: bool, target: TargetName) -> str:
    """Returns the sampler, by default one that suits. Raises UsageError for one that learns from no times."""
    if is_timed:
        return TIMED_SAMPLER if word is None else word
    if word is not None and word not in UNTIMED_SAMPLERS:
        raise UsageError(
            f"sampler: found {word!r}, allowed {', '.join(UNTIMED_SAMPLERS)}: "
            f"target {target.kind} gives no times to learn from"
        )
    return UNTIMED_SAMPLERS[0] if word is None else word
