"""A problem with a name and a count, as a shapes file or a model gives it; and groups' settings from them."""

from dataclasses import dataclass, replace

from tuner.core.errors import UsageError
from tuner.core.problem import Problem

COUNT_LIMIT = 10**9


@dataclass(frozen=True)
class NamedProblem:
    """A problem to tune together with others: what it is called, and how often it occurs."""

    problem: Problem
    name: str = ""  # of a layer or a function
    count: int = 1

    def __post_init__(self) -> None:
        """Raises UsageError for a count that is no integer from 1 to 10**9."""
        if type(self.count) is not int or not 1 <= self.count <= COUNT_LIMIT:
            raise UsageError(f"count: found {self.count!r}, allowed 1..{COUNT_LIMIT}")


def combined(problems: tuple[NamedProblem, ...]) -> tuple[NamedProblem, ...]:
    """Returns each problem once, in order of occurrence: counts are added, names joined by a comma."""
    found: dict[Problem, NamedProblem] = {}
    for each in problems:
        known = found.get(each.problem)
        if known is None:
            found[each.problem] = each
            continue
        names = dict.fromkeys((*known.name.split(", "), each.name))
        joined = ", ".join(name for name in names if name)
        found[each.problem] = replace(known, name=joined, count=known.count + each.count)
    return tuple(found.values())
