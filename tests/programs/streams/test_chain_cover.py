from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tuner.programs.streams.stream_plan import chain_cover

Order = tuple[frozenset[int], ...]


@st.composite
def orders(draw: st.DrawFn, size: int = 8) -> Order:
    """Draws a partial order: what precedes each element, transitively closed."""
    before: list[frozenset[int]] = []
    for v in range(draw(st.integers(0, size))):
        chosen = draw(st.sets(st.integers(0, v - 1))) if v else set()
        closed = set(chosen)
        for u in chosen:
            closed |= before[u]
        before.append(frozenset(closed))
    return tuple(before)


def no_preference(u: int, v: int) -> int:
    return 0


def widest_antichain(before: Order) -> int:
    """Returns by brute force how many elements can be pairwise unordered."""
    count = len(before)
    best = 0
    for mask in range(1 << count):
        chosen = [v for v in range(count) if mask >> v & 1]
        if all(u not in before[v] for v in chosen for u in chosen):
            best = max(best, len(chosen))
    return best


@given(orders())
def test_no_cover_has_fewer_chains(before: Order) -> None:
    assert len(chain_cover(before, no_preference, 99)) == widest_antichain(before)


@given(orders(), st.integers(1, 3), st.integers())
def test_each_element_is_in_one_chain_in_order(before: Order, limit: int, seed: int) -> None:
    chains = chain_cover(before, lambda u, v: hash((seed, u, v)) % 5, limit)
    assert sorted(v for chain in chains for v in chain) == list(range(len(before)))
    assert all(list(chain) == sorted(chain) for chain in chains)
    assert len(chains) <= limit


@given(orders(), st.integers())
def test_a_preference_never_costs_a_chain(before: Order, seed: int) -> None:
    chains = chain_cover(before, lambda u, v: hash((seed, u, v)) % 5, 99)
    assert len(chains) == widest_antichain(before)
    assert all(u in before[v] for chain in chains for u, v in pairwise(chain))


def test_a_preference_decides_between_equal_covers() -> None:
    before = (frozenset[int](), frozenset[int](), frozenset({0, 1}))
    assert chain_cover(before, lambda u, v: u == 0, 9) == ((0, 2), (1,))
    assert chain_cover(before, lambda u, v: u == 1, 9) == ((1, 2), (0,))


def test_a_long_path_needs_no_deep_recursion() -> None:
    before = tuple(frozenset(range(v)) for v in range(400))
    assert chain_cover(before, no_preference, 9) == (tuple(range(400)),)
