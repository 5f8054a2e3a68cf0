"""Where buffers hold their contents: in host memory, in device memory, or in both alike.

Buffers that control flow may exchange are one family and have one state. A copy makes the other side valid
too, a write leaves one side; where ways meet, what is valid on all of them is.
"""

import enum
from collections.abc import Callable, Sequence

TURNS_LIMIT = (
    4  # of the search for the state at a loop's start; any state is correct, the search saves copies
)


class Side(enum.Enum):
    """The two memories."""

    HOST = "host"
    DEVICE = "device"

    @property
    def other(self) -> "Side":
        """Returns the side that a copy to this one comes from."""
        return Side.DEVICE if self is Side.HOST else Side.HOST


Place = tuple[int, Side]  # a family's number, and where it is valid
Valid = frozenset[Place]


def written(valid: Valid, family: int, side: Side) -> Valid:
    """Returns the state after a write: the other side is out of date."""
    return valid - {(family, side.other)} | {(family, side)}


def sides_of(valid: Valid, family: int) -> set[Side]:
    """Returns where a family is valid."""
    return {side for number, side in valid if number == family}


def agreed(ways: Sequence[Valid], preferred: Callable[[int], set[Side]]) -> Valid:
    """Returns the state where ways meet: what all have.

    For a family that they have in different places it is the preferred one, which a copy at the end of the
    other ways makes true.
    """
    common = frozenset.intersection(*ways)
    known = frozenset.intersection(*(frozenset(family for family, _ in way) for way in ways))
    lost = known - {family for family, _ in common}
    return common | {(family, side) for family in lost for side in preferred(family)}


def after_branches(before: Valid, ways: Sequence[Valid]) -> Valid:
    """Returns the state after a branch.

    A family goes back to where it was, so that a way that does not touch it copies nothing; to the device if
    it was in both.
    """

    def preferred(family: int) -> set[Side]:
        sides = sides_of(before, family)
        return sides if len(sides) == 1 else {Side.DEVICE}

    return agreed(ways, preferred)


def at_loop(before: Valid, turn: Callable[[Valid], tuple[Valid, Valid]]) -> Valid:
    """Returns the state that a loop starts every turn with.

    ``turn`` tells the state after one, and what it had to copy first. Copies go before the loop where one
    there serves all turns, and where a turn leaves a family elsewhere than it found it.
    """
    _, copied = turn(before)
    families = {family for family, _ in before}
    state = before | {place for place in copied if place[0] in families}
    for _ in range(TURNS_LIMIT):
        after, _ = turn(state)
        following = agreed([state, after], lambda family, after=after: sides_of(after, family))  # type: ignore[misc]
        if following == state:
            break
        state = following
    return state
