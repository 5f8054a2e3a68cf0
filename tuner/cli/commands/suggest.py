"""``tuner space --suggest``: constraints mined from failed trials, as lines of a search space file."""

from typing import TYPE_CHECKING, Any

from tuner.cli.options import open_known_store, print_found
from tuner.core.errors import UsageError
from tuner.core.moments import parse_moment
from tuner.output.formatting import count_text

if TYPE_CHECKING:
    from tuner.analysis.constraint_mining import Suggestion
    from tuner.core.problem import Problem
    from tuner.core.target_name import TargetName
    from tuner.space.search_space import SearchSpace


def suggest_constraints(
    spaces: "tuple[SearchSpace, ...]",
    problem: "Problem",
    target: "TargetName",
    database: str | None,
    min_support: int,
    since: str | None,
    as_json: bool,
) -> None:
    """Prints, per strategy in ``spaces``, constraints that would have excluded failed trials of the database.

    Each explains ``min_support`` failed points or more, from trials since the date ``since`` (None: all).
    Raises UsageError for an invalid ``min_support`` or ``since``, or a database that cannot be opened.
    """
    from tuner.run_history.suggest_constraints import place, suggestions

    if min_support < 1:
        raise UsageError(f"min-support: found {min_support}, allowed 1 or more")
    moment = None if since is None else parse_moment(since)
    here = place(problem, target)
    with open_known_store(database) as store:
        found = {
            space.strategy: suggestions(store, space, problem, target, min_support, moment)
            for space in spaces
        }
    document = [_document(strategy, each, here) for strategy in found for each in found[strategy]]
    lines = _lines({name: each for name, each in found.items() if each}, here, min_support)
    print_found(as_json, document, *lines)


def _document(strategy: str, suggestion: "Suggestion", here: str) -> dict[str, Any]:
    return {
        "strategy": strategy,
        "constraint": suggestion.constraint,
        "stage": suggestion.stage.value,
        "reason": suggestion.reason,
        "trials": suggestion.trials,
        "trials_here": dict(suggestion.problems)[here],
        "problems": len(suggestion.problems),
        "chance": suggestion.chance,
    }


def _lines(found: "dict[str, tuple[Suggestion, ...]]", here: str, min_support: int) -> list[str]:
    if not found:
        support = count_text(min_support, "failure")
        return [
            f"# {here}:",
            f"# nothing to suggest: no constraint explains {support} or more, and no success, beyond chance",
        ]
    lines = ["strategies:"]
    for strategy, suggestions in found.items():
        lines += [f"  {strategy}:", "    constraints:"]
        for each in suggestions:
            lines += _suggestion_lines(each, here)
    return lines


def _suggestion_lines(suggestion: "Suggestion", here: str) -> list[str]:
    saved = f"would have saved {count_text(suggestion.trials, 'failed trial')}"
    where = (
        f"{dict(suggestion.problems)[here]} of them here, {count_text(len(suggestion.problems), 'problem')}"
    )
    reason = " ".join(suggestion.reason.split())
    return [
        f"      # {saved} ({where}); p-value: {suggestion.chance:.1g}",
        f"      # {suggestion.stage.value}: {reason}",
        f'      - "{suggestion.constraint}"',
    ]
