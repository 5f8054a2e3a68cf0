from dataclasses import replace
from itertools import chain, combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import costly
from tuner.gpu.streams.stream_plan import BEGIN, Node, NodeKind, StreamPlan, chain_cover, plan_streams

WORK, HOST, ALLOCATION, FREE = NodeKind.WORK, NodeKind.HOST, NodeKind.ALLOCATION, NodeKind.FREE
END = -2
Nodes = tuple[Node, ...]
Order = tuple[frozenset[int], ...]


@st.composite
def programs(draw: st.DrawFn) -> Nodes:
    """Draws nodes with direct conflicts; a free waits for some, nothing waits for a free."""
    nodes: list[Node] = []
    for number in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from([WORK, WORK, WORK, WORK, HOST, ALLOCATION, FREE]))
        earlier = [u for u in range(number) if nodes[u].kind is not FREE]
        before = draw(st.sets(st.sampled_from(earlier), max_size=4)) if earlier else set()
        if kind is ALLOCATION:
            before = set()
        nodes.append(Node(kind, frozenset(before), draw(st.booleans())))
    return tuple(nodes)


def required(nodes: Nodes, has_caller: bool) -> set[tuple[int, int]]:
    pairs = {(u, v) for v, node in enumerate(nodes) for u in node.before}
    if has_caller:
        device = [v for v, node in enumerate(nodes) if node.kind is not HOST]
        pairs |= {(BEGIN, v) for v in device} | {(v, END) for v in device}
    return pairs


def happens_before(plan: StreamPlan, has_caller: bool) -> set[tuple[int, int]]:
    """Returns all pairs that streams, waits and the host put in order: told apart from how a plan is made."""
    seen: dict[int, set[int]] = {BEGIN: set()}
    last: dict[int | None, int] = {0: BEGIN} if has_caller else {}
    for step in plan.steps:
        goes_on = has_caller or step.slot is None or not step.waits
        follows = last.get(step.slot) if goes_on else None
        known = [u for u in (follows, last.get(None), *step.waits) if u is not None]
        seen[step.node] = set().union(*({u} | seen[u] for u in known))
        last[step.slot] = step.node
    at_end = (last.get(0) if has_caller else None, last.get(None), *plan.last_waits)
    end = [u for u in at_end if u is not None]
    seen[END] = set().union(*({u} | seen[u] for u in end))
    for free in plan.last_frees:
        seen[free] = set(seen[END])
        seen[END].add(free)
    return {(u, v) for v, earlier in seen.items() for u in earlier}


def without(plan: StreamPlan, index: int, wait: int) -> StreamPlan:
    if index == len(plan.steps):
        return replace(plan, last_waits=tuple(u for u in plan.last_waits if u != wait))
    step = plan.steps[index]
    less = replace(step, waits=tuple(u for u in step.waits if u != wait))
    return replace(plan, steps=(*plan.steps[:index], less, *plan.steps[index + 1 :]))


def waits_of(plan: StreamPlan) -> list[tuple[int, int]]:
    of_steps = [(index, wait) for index, step in enumerate(plan.steps) for wait in step.waits]
    return of_steps + [(len(plan.steps), wait) for wait in plan.last_waits]


@costly(40, 100)
@given(programs(), st.booleans(), st.sampled_from([1, 2, 3, 99]))
def test_every_dependency_holds_and_all_is_done_once(nodes: Nodes, has_caller: bool, limit: int) -> None:
    plan = plan_streams(nodes, has_caller=has_caller, limit=limit)
    assert required(nodes, has_caller) <= happens_before(plan, has_caller)
    assert sorted([step.node for step in plan.steps] + list(plan.last_frees)) == list(range(len(nodes)))
    assert plan.slots <= limit
    assert all(step.slot < plan.slots for step in plan.steps if step.slot is not None)


@costly(40, 100)
@given(programs(), st.booleans(), st.sampled_from([1, 2, 3, 99]))
def test_no_wait_is_implied_by_the_others(nodes: Nodes, has_caller: bool, limit: int) -> None:
    # without a caller a lower limit keeps an order that nothing else asks for
    plan = plan_streams(nodes, has_caller=has_caller, limit=limit if has_caller else 99)
    for index, wait in waits_of(plan):
        assert not required(nodes, has_caller) <= happens_before(without(plan, index, wait), has_caller)


@given(programs())
def test_the_order_of_issue_stays_but_for_frees_and_only_work_takes_streams(nodes: Nodes) -> None:
    plan = plan_streams(nodes, has_caller=True, limit=99)
    others = [step.node for step in plan.steps if nodes[step.node].kind is not FREE]
    assert others == sorted(others)
    used = {step.slot for step in plan.steps if nodes[step.node].kind is WORK}
    assert {step.slot for step in plan.steps if step.slot} <= used


def kernel(*before: int, kind: NodeKind = WORK) -> Node:
    return Node(kind, frozenset(before), is_kernel=kind is WORK)


def plan_of(*nodes: Node) -> StreamPlan:
    return plan_streams(nodes, has_caller=True, limit=99)


def test_chains_take_two_streams_and_the_host_waits_for_what_it_reads_alone() -> None:
    plan = plan_of(kernel(), kernel(), kernel(0), kernel(1), kernel(2, 3))
    expected = [(1, (BEGIN,)), (0, ()), (1, ()), (0, ()), (0, (2,))]
    assert [(step.slot, step.waits) for step in plan.steps] == expected
    assert (plan.slots, plan.last_waits) == (2, ())
    copy = Node(WORK)
    copies = (copy, kernel(0), copy, kernel(1, 2), copy, kernel(3, 4))
    plan = plan_of(*copies)
    assert len({step.slot for step in plan.steps if copies[step.node].is_kernel}) == 1
    assert plan.slots == 3
    plan = plan_of(kernel(), kernel(), kernel(1, kind=HOST))
    assert (plan.steps[2].slot, plan.steps[2].waits) == (None, (1,))
    plan = plan_of(kernel(), kernel(), kernel(0, 1, kind=HOST), kernel(0), kernel(1))
    assert [step.waits for step in plan.steps[3:]] == [(), ()]
    # 0 is read on two streams, which meet at 3: the free before it would make one of them wait
    nodes = (kernel(), kernel(0), kernel(0), kernel(0, 1, 2, kind=FREE), kernel(1, 2))
    plan = plan_of(*nodes)
    assert [step.node for step in plan.steps] == [0, 1, 2, 4, 3]
    assert plan.steps[-1].waits == ()
    plan = plan_of(*nodes[:-1])
    assert (plan.last_frees, len(plan.last_waits)) == ((3,), 1)


@pytest.mark.parametrize("has_caller", [True, False])
def test_no_work_needs_no_wait(has_caller: bool) -> None:
    plan = plan_streams((Node(HOST), Node(HOST, frozenset({0}))), has_caller=has_caller, limit=4)
    assert (plan.slots, plan.last_waits) == (1, ())
    assert [step.waits for step in plan.steps] == [(), ()]


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


def widest_antichain(before: Order) -> int:
    subsets = chain.from_iterable(combinations(range(len(before)), size) for size in range(len(before) + 1))
    return max(len(each) for each in subsets if all(u not in before[v] for v in each for u in each))


@given(orders(), st.integers(1, 3) | st.just(99), st.integers())
def test_each_element_is_in_one_chain_and_no_cover_has_fewer(before: Order, limit: int, seed: int) -> None:
    """Whatever the preference: it never costs a chain."""
    chains = chain_cover(before, lambda u, v: hash((seed, u, v)) % 5, limit)
    assert sorted(v for one in chains for v in one) == list(range(len(before)))
    assert all(list(one) == sorted(one) for one in chains)
    assert len(chains) == min(limit, widest_antichain(before))
    if limit == 99:
        assert all(u in before[v] for one in chains for u, v in pairwise(one))


def test_a_preference_decides_between_equal_covers_and_a_long_path_needs_no_recursion() -> None:
    before = (frozenset[int](), frozenset[int](), frozenset({0, 1}))
    assert chain_cover(before, lambda u, v: u == 0, 9) == ((0, 2), (1,))
    assert chain_cover(before, lambda u, v: u == 1, 9) == ((1, 2), (0,))
    long = tuple(frozenset(range(v)) for v in range(400))
    assert chain_cover(long, lambda _u, _v: 0, 9) == (tuple(range(400)),)
