"""Covers a partial order with the fewest chains: each chain is the work of one stream, in order.

The minimum is n - m, where n is the number of elements and m the size of a maximum bipartite matching between
elements and their successors: Dilworth's theorem by way of Koenig's (D. R. Fulkerson, "Note on Dilworth's
decomposition theorem for partially ordered sets", Proc. AMS 7, 1956). Each pair of the matching is two
neighbours on a chain.
"""

from collections import deque
from collections.abc import Callable

Chain = tuple[int, ...]


def chain_cover(
    before: tuple[frozenset[int], ...], preference: Callable[[int, int], int], limit: int
) -> tuple[Chain, ...]:
    """Covers a partial order with the fewest chains; returns each chain's elements in ascending order.

    Every element is on one chain; the longest chain comes first.

    Args:
        before: ``before[v]`` contains all elements that precede v; transitively closed, and all less than v.
        preference: ``preference(u, v)`` is larger the better v follows u on a chain. It selects among minimum
            covers and never adds a chain.
        limit: maximum number of chains. Above the limit the shortest chains are merged; neighbours on a
            merged chain need not be ordered.
    """
    matching = _Matching(before, preference)
    for element in range(len(before)):
        matching.augment(element)
    return _within(limit, matching.chains())


class _Matching:
    """A bipartite matching of elements to their followers; maximum after ``augment`` of every element."""

    def __init__(self, before: tuple[frozenset[int], ...], preference: Callable[[int, int], int]) -> None:
        self._choices = [
            sorted(earlier, key=lambda u, v=v: (-preference(u, v), -u))  # type: ignore[misc] # bound per element
            for v, earlier in enumerate(before)
        ]
        self._follower: dict[int, int] = {}  # u -> v
        self._leader: dict[int, int] = {}  # v -> u
        self._match_greedily(preference)

    def augment(self, element: int) -> None:
        """Matches ``element`` as a follower along an augmenting path, if a path exists (Kuhn's algorithm)."""
        if element in self._leader:
            return
        led_to: dict[int, int] = {}  # u -> the element that would follow u
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
        """Returns the chains of the matching; each starts at an element that follows no other element."""
        return [self._chain(v) for v in range(len(self._choices)) if v not in self._leader]

    def _match_greedily(self, preference: Callable[[int, int], int]) -> None:
        pairs = [(u, v) for v, choices in enumerate(self._choices) for u in choices]
        for u, v in sorted(pairs, key=lambda pair: (-preference(*pair), pair[1], -pair[0])):
            if u not in self._follower and v not in self._leader:
                self._follower[u], self._leader[v] = v, u

    def _flip(self, u: int, led_to: dict[int, int]) -> None:
        """Swaps matched and unmatched pairs along the augmenting path that ends in ``u``."""
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
    """Merges the two shortest chains until at most ``limit`` chains remain."""
    while True:
        chains.sort(key=lambda chain: (-len(chain), chain))
        if len(chains) <= max(limit, 1):
            return tuple(chains)
        last, second = chains.pop(), chains.pop()
        chains.append(tuple(sorted(last + second)))
