"""Covers a partial order with the fewest chains: each chain is what one stream does, in order.

The least number of chains is n - m, where m is the size of a maximum matching between elements and later ones
that they precede (Dilworth's theorem, in Fulkerson's form).
"""

from collections import deque
from collections.abc import Callable

Chain = tuple[int, ...]


def chain_cover(
    before: tuple[frozenset[int], ...], liking: Callable[[int, int], int], limit: int
) -> tuple[Chain, ...]:
    """Returns chains that hold every element once, each in rising order; the longest first.

    ``before[v]`` names all elements that precede v, transitively closed and all less than v. ``liking(u, v)``
    is the larger the better v follows u on one chain; it chooses among covers, never against their number.
    Above ``limit`` chains, the shortest are put together, and then neighbours need not be ordered.
    """
    matching = _Matching(before, liking)
    for element in range(len(before)):
        matching.augment(element)
    return _within(limit, matching.chains())


class _Matching:
    """Which element follows which; grown to a maximum by augmenting paths."""

    def __init__(self, before: tuple[frozenset[int], ...], liking: Callable[[int, int], int]) -> None:
        self._choices = [
            sorted(earlier, key=lambda u, v=v: (-liking(u, v), -u))  # type: ignore[misc] # bound per element
            for v, earlier in enumerate(before)
        ]
        self._follower: dict[int, int] = {}  # u -> v
        self._leader: dict[int, int] = {}  # v -> u
        self._take_what_is_liked(liking)

    def augment(self, element: int) -> None:
        """Finds a leader for an element that has none, if others can be led by somebody else for it."""
        if element in self._leader:
            return
        led_to: dict[int, int] = {}  # u -> the element that would take it
        waiting = deque([element])
        while waiting:
            v = waiting.popleft()
            for u in self._choices[v]:
                if u in led_to:
                    continue
                led_to[u] = v
                if u not in self._follower:
                    self._flip(u, led_to)
                    return
                waiting.append(self._follower[u])

    def chains(self) -> list[Chain]:
        """Returns the chains that the matching makes."""
        return [self._chain(v) for v in range(len(self._choices)) if v not in self._leader]

    def _take_what_is_liked(self, liking: Callable[[int, int], int]) -> None:
        pairs = [(u, v) for v, choices in enumerate(self._choices) for u in choices]
        for u, v in sorted(pairs, key=lambda pair: (-liking(*pair), pair[1], -pair[0])):
            if u not in self._follower and v not in self._leader:
                self._follower[u], self._leader[v] = v, u

    def _flip(self, u: int, led_to: dict[int, int]) -> None:
        while True:
            v = led_to[u]
            freed = self._leader.get(v)
            self._follower[u], self._leader[v] = v, u
            if freed is None:
                return
            u = freed

    def _chain(self, first: int) -> Chain:
        chain = [first]
        while chain[-1] in self._follower:
            chain.append(self._follower[chain[-1]])
        return tuple(chain)


def _within(limit: int, chains: list[Chain]) -> tuple[Chain, ...]:
    """Puts the two shortest together until there are no more than ``limit``."""
    while True:
        chains.sort(key=lambda chain: (-len(chain), chain))
        if len(chains) <= max(limit, 1):
            return tuple(chains)
        last, second = chains.pop(), chains.pop()
        chains.append(tuple(sorted(last + second)))
