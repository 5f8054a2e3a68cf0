"""Loops of random work: streams that go on from iteration to iteration keep every dependence."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.mlir

carried_dependences = pytest.importorskip("tuner.programs.streams.dependency_graph")
buffer_accesses = pytest.importorskip("tuner.mlir.effects.accesses")
buffer_regions = pytest.importorskip("tuner.mlir.effects.accesses")
stream_plan = pytest.importorskip("tuner.programs.streams.stream_plan")
NodeKind, BEGIN = stream_plan.NodeKind, stream_plan.BEGIN

ITERATIONS = 3
Place = tuple[int, int]  # iteration, node


def touching(reads: Any, writes: Any) -> Any:
    parts = [frozenset(buffer_regions.BufferPart(name) for name in names) for names in (reads, writes)]
    return buffer_accesses.Accesses(*parts)


def node(kind: Any, reads: str = "", writes: str = "", inside: str = "") -> Any:
    """Returns a node that touches buffers named by letters; the host writes those inside."""
    return carried_dependences.NodeAccesses(kind, touching(reads, writes), touching("", inside))


@st.composite
def bodies(draw: st.DrawFn, hosts: int = 1) -> tuple[Any, ...]:
    """Draws nodes, of four one or none the host's."""
    names = st.text("abc", max_size=2)
    kinds = st.sampled_from([NodeKind.WORK, NodeKind.WORK, NodeKind.WORK, *[NodeKind.HOST] * hosts])
    drawn = draw(st.lists(st.tuples(kinds, names, names), min_size=1, max_size=6))
    return tuple(node(kind, reads, writes) for kind, reads, writes in drawn)


def nodes_of(body: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the nodes of a dependency graph, as ``dependency_graph.py`` makes them."""
    on_device = [each.own for each in body if each.kind is NodeKind.WORK]
    made = []
    for number, each in enumerate(body):
        before = {u for u in range(number) if body[u].own.conflicts_with(each.own)}
        if each.kind is NodeKind.HOST and any(each.own.conflicts_with(other) for other in on_device):
            before.add(BEGIN)
        made.append(stream_plan.Node(each.kind, frozenset(before)))
    return tuple(made)


def before_each(plan: Any, skipped: int | None = None) -> dict[Place, set[Place]]:
    """Follows a plan for some iterations; returns what is done before each node. One wait may be skipped."""
    done: dict[Place, set[Place]] = {}
    streams: list[set[Place]] = [set() for _ in range(plan.slots)]
    host: set[Place] = set()
    for iteration in range(ITERATIONS):
        events = {BEGIN: set(streams[0])}
        waits = iter(range(1000))

        def reached(events: dict[int, set[Place]], waits: Iterator[int], *nodes: int) -> set[Place]:
            return set().union(*(events[each] for each in nodes if next(waits) != skipped))

        for step in plan.steps:
            awaited = reached(events, waits, *step.waits)
            if step.slot is None:
                host |= awaited
                done[iteration, step.node] = set(host)
                host.add((iteration, step.node))
                continue
            streams[step.slot] |= host | awaited
            done[iteration, step.node] = set(streams[step.slot])
            streams[step.slot].add((iteration, step.node))
            events[step.node] = set(streams[step.slot])
        for slot, each in [*((0, each) for each in plan.last_waits), *plan.carried_waits]:
            streams[slot] |= reached(events, waits, each)
    return done


def required(body: tuple[Any, ...]) -> set[tuple[Place, Place]]:
    places = [(iteration, number) for iteration in range(ITERATIONS) for number in range(len(body))]
    return {
        (one, other)
        for position, other in enumerate(places)
        for one in places[:position]
        if body[one[1]].own.conflicts_with(body[other[1]].own)
    }


def ordered(done: dict[Place, set[Place]]) -> set[tuple[Place, Place]]:
    return {(one, other) for other, earlier in done.items() for one in earlier}


@settings(max_examples=60)
@given(bodies(), st.sampled_from([1, 2, 99]))
def test_streams_that_go_on_keep_every_dependence(body: tuple[Any, ...], limit: int) -> None:
    carried = carried_dependences.carried_dependences(body)
    plan = stream_plan.plan_streams(nodes_of(body), has_caller=True, limit=limit, carried=carried)
    assert plan.slots <= limit
    assert required(body) <= ordered(before_each(plan))


@settings(max_examples=60, derandomize=True)
@given(bodies(hosts=0))
def test_no_wait_of_a_loop_can_be_left_out(body: tuple[Any, ...]) -> None:
    carried = carried_dependences.carried_dependences(body)
    plan = stream_plan.plan_streams(nodes_of(body), has_caller=True, limit=99, carried=carried)
    waits = sum(len(step.waits) for step in plan.steps) + len(plan.last_waits) + len(plan.carried_waits)
    assert all(not required(body) <= ordered(before_each(plan, skipped=wait)) for wait in range(waits))


def test_the_host_waits_for_what_it_reads_and_not_for_other_chains() -> None:
    body = (*(node(NodeKind.WORK, writes=each) for each in "ab"), node(NodeKind.HOST, reads="a"))
    carried = carried_dependences.carried_dependences(body)
    plan = stream_plan.plan_streams(nodes_of(body), has_caller=True, limit=99, carried=carried)
    assert [step.waits for step in plan.steps] == [(), (), (0,)]
    assert (plan.slots, plan.last_waits, plan.carried_waits) == (2, (), ())


def test_independent_chains_are_carried_by_no_pair() -> None:
    assert (
        carried_dependences.carried_dependences([node(NodeKind.WORK, writes=each) for each in "ab"]) == set()
    )


def test_conflicts_are_carried_in_both_directions() -> None:
    pair = [node(NodeKind.WORK, writes="a"), node(NodeKind.WORK, reads="a", writes="b")]
    assert carried_dependences.carried_dependences(pair) == {(0, 1), (1, 0)}


def test_what_the_host_touches_is_joined_to_the_first_stream() -> None:
    work = node(NodeKind.WORK, writes="a")
    assert carried_dependences.carried_dependences([work, node(NodeKind.HOST, reads="a")]) == {(0, BEGIN)}
    around = node(NodeKind.WORK, writes="b", inside="a")
    assert carried_dependences.carried_dependences([work, around]) == {(0, 1), (0, BEGIN)}


@pytest.mark.parametrize("kind", [NodeKind.ALLOCATION, NodeKind.FREE])
def test_memory_that_other_iterations_use_keeps_the_joins(kind: Any) -> None:
    work = node(NodeKind.WORK, writes="a")
    assert carried_dependences.carried_dependences([work, node(kind, writes="a")]) is None
    assert carried_dependences.carried_dependences([work, node(kind, writes="a").without({"a"})]) == set()
