"""Looks up how a target kind runs programs: its device, if any, and its assembler."""

from collections.abc import Callable

from tuner.core.errors import UsageError
from tuner.core.target_name import TargetName
from tuner.tuning.composition import Composition
from tuner.tuning.target_kind import ProgramSupport


def kinds_with(is_there: Callable[[ProgramSupport], bool], composition: Composition) -> str:
    """Returns the names of the target kinds that run programs and meet a condition: "cuda, simulator".

    The text is for messages. ``is_there`` is the condition on a kind's program support.
    """
    kinds = composition.kinds.values()
    return ", ".join(each.name for each in kinds if each.programs and is_there(each.programs))


def program_support(target: TargetName, composition: Composition) -> ProgramSupport:
    """Returns how a kind of target runs whole programs: its device, if any, and its assembler.

    Raises UsageError for a target that runs single operations only.
    """
    known = composition.kinds.get(target.kind)
    kind = None if known is None else composition.kind(target)
    if kind is None or kind.programs is None:
        allowed = kinds_with(lambda _programs: True, composition)
        raise UsageError(f"target: found {target.text}, allowed for programs: {allowed}")
    return kind.programs
