"""Where buffers hold their current contents: in host memory, in device memory, or in both.

The states of a forward data-flow analysis, with its meet and loop rules; ``coherence.py`` has the transfer
functions. An alias set, whose buffers control flow may exchange, has one state. A copy makes the other side
valid too; a write leaves only the written side valid. Where control-flow paths join, a location is valid if
it is valid on all paths.
"""

import enum
from collections.abc import Callable, Sequence

# Maximum number of iterations of the search for a fixed point. Any state is correct, since copies make it
# true; a fixed point saves copies.
ITERATIONS_LIMIT = 4


class Side(enum.Enum):
    """One of the two memories that a buffer has: of the host or of the device."""

    HOST = "host"
    DEVICE = "device"

    @property
    def other(self) -> "Side":
        """Returns DEVICE for HOST, and HOST for DEVICE."""
        return Side.DEVICE if self is Side.HOST else Side.HOST


Location = tuple[int, Side]  # number of an alias set, and the memory in which it is valid
Valid = frozenset[Location]


def written(valid: Valid, alias_set: int, side: Side) -> Valid:
    """Returns ``valid`` after a write to an alias set on one side, which makes the other side out of date.

    ``valid`` contains (number of an alias set, memory that has its current contents).
    """
    return valid - {(alias_set, side.other)} | {(alias_set, side)}


def sides_of(valid: Valid, alias_set: int) -> set[Side]:
    """Returns the memories, host or device or both, in which an alias set is valid according to ``valid``."""
    return {side for number, side in valid if number == alias_set}


def meet(paths: Sequence[Valid], preferred: Callable[[int], set[Side]]) -> Valid:
    """Returns what is valid where control-flow paths join: what is valid at the end of every path.

    An alias set that is valid on every path, but on no side common to all paths, gets its preferred sides: a
    copy at the end of the other paths makes these sides valid.

    Args:
        paths: per path, the pairs (number of an alias set, memory that has its current contents).
        preferred: maps the number of an alias set to its preferred memories.
    """
    common = frozenset.intersection(*paths)
    known = frozenset.intersection(*(frozenset(alias_set for alias_set, _ in path) for path in paths))
    lost = known - {alias_set for alias_set, _ in common}
    return common | {(alias_set, side) for alias_set in lost for side in preferred(alias_set)}


def after_branches(before: Valid, paths: Sequence[Valid]) -> Valid:
    """Returns what is valid after a branch, given what is valid before it and at the end of each path.

    Where no side is common, an alias set returns to the side where it was valid before the branch, so that a
    path that does not access the alias set copies nothing; to the device if it was valid on both sides or on
    none.
    """

    def preferred(alias_set: int) -> set[Side]:
        sides = sides_of(before, alias_set)
        return sides if len(sides) == 1 else {Side.DEVICE}

    return meet(paths, preferred)


def at_loop(before: Valid, iteration: Callable[[Valid], tuple[Valid, Valid]]) -> Valid:
    """Returns what is valid at the start of every iteration of a loop, by forward data flow to a fixed point.

    The search begins with the locations that the first iteration fetches: a copy before the loop serves all
    iterations. It ends after four rounds in any case.

    Args:
        before: what is valid before the loop.
        iteration: maps what is valid before it to (what is valid after it, locations fetched in it).
    """
    _, fetched = iteration(before)
    known = {alias_set for alias_set, _ in before}
    state = before | {location for location in fetched if location[0] in known}
    for _ in range(ITERATIONS_LIMIT):
        after, _ = iteration(state)
        following = meet([state, after], lambda alias_set, after=after: sides_of(after, alias_set))  # type: ignore[misc]
        if following == state:
            break
        state = following
    return state
