"""Refuses scripts whose code the target's machine cannot run, before anything is compiled."""

from collections.abc import Collection

from tuner.core.instruction_sets import require_instructions
from tuner.core.runs import RunSettings
from tuner.core.target_name import TargetName
from tuner.tuning.composition import Composition

PLAIN_SUFFIX = ".mlir"  # a template may choose its ops by the machine: only its scripts are refused


def require_offered(composition: Composition, target: TargetName, needs: Collection[str], what: str) -> None:
    """Raises UsageError where the machine of ``target`` lacks an instruction set of ``needs``.

    ``needs`` are names of ``tuner.core.instruction_sets``, such as "amx-bf16". ``what`` begins the message.
    """
    if needs:
        require_instructions(composition.outcomes(target).machine(target), needs, what)


def require_scripts_offered(composition: Composition, settings: RunSettings) -> None:
    """Raises UsageError for a user's plain script that needs more than the machine of a run's target has."""
    from tuner.scripts.needed_instructions import instructions_needed
    from tuner.scripts.strategy import load_strategy

    if not settings.target.has_machine:
        return
    for chosen in settings.strategies:
        if chosen.path is not None and chosen.path.name.endswith(PLAIN_SUFFIX):
            script = load_strategy(chosen.name, chosen.path).text
            needs = instructions_needed(script, settings.problem.dtype)
            require_offered(composition, settings.target, needs, chosen.path.name)
