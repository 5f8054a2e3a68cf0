"""Converts a request for many problems to the settings of a group and of its runs."""

from collections.abc import Callable

from tuner.core.errors import UsageError
from tuner.core.problem import Problem
from tuner.core.run_groups import GroupMember, GroupSettings
from tuner.tuning.composition import Composition
from tuner.tuning.many_shapes.named_problem import NamedProblem, combined
from tuner.tuning.run_request import RunRequest
from tuner.tuning.settings import run_settings

TRIALS_EACH = 8  # of each problem on average, where neither trials nor a budget is given

RequestOf = Callable[[Problem], RunRequest]  # raises UsageError


def group_settings(
    problems: tuple[NamedProblem, ...], request_of: RequestOf, composition: Composition, source: str = ""
) -> tuple[GroupSettings, tuple[GroupMember, ...]]:
    """Returns the settings of a group that tunes ``problems``, and its members, each problem once.

    Args:
        problems: At least one; equal problems become one, with the sum of their counts.
        request_of: Returns the request of a run of one problem, whose limits are those of the whole group.
        composition: The replaceable parts of a run.
        source: Name of the file that the problems come from; "" for none.

    Raises UsageError for no problem, for an invalid request, and, naming the problem, for one that the target
    cannot do.
    """
    distinct = combined(problems)
    if not distinct:
        raise UsageError("no problem to tune")
    request = request_of(distinct[0].problem)
    trials = request.trials
    if trials is None and request.budget_s is None:
        trials = TRIALS_EACH * len(distinct)
    members = tuple(_member(each, request_of, composition) for each in distinct)
    return GroupSettings(source, trials, request.budget_s, request.seed, ()), members


def _member(named: NamedProblem, request_of: RequestOf, composition: Composition) -> GroupMember:
    try:
        settings = run_settings(request_of(named.problem), composition)
    except UsageError as error:
        key = named.problem.key
        line = error.message if key in error.message else f"{key}: {error.message}"
        raise UsageError(line, error.hint) from None
    return GroupMember(settings, named.name, named.count)
