from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mlir.kernels import parsed
from tests.models.file_check import cases
from tests.models.lowering import device_programs as texts
from tests.models.lowering.device_programs import BUFFER, alloc, copy, free, host_function, launch, store
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.gpu.streams import async_ops, dependency_graph
from tuner.gpu.streams.stream_plan import BEGIN, Node, NodeKind, StreamPlan, plan_streams
from tuner.mlir.effects import accesses as buffer_accesses
from tuner.mlir.effects import memory_effects as kernel_effects
from tuner.mlir.ir import reading as walking

pytestmark = pytest.mark.mlir
Found = list[tuple[str, list[int]]]
LOOP = ("scf.for %i = %c0 to %n step %c1 {", launch("inc", "a"), *store("b"), copy("b", "a"), "}")
LOAD = f"%v = memref.load %b[%c0] : {BUFFER}"
BRANCH = ("scf.if %flag {", *store("b"), launch("inc", "a"), "}")
USED = (alloc("d"), launch("inc", "d"))


def graph_of(text: str) -> list[tuple[str, list[int], list[Found]]]:
    with texts.main_function(text) as (module, function):
        effects = kernel_effects.KernelEffects(module)
        graph = dependency_graph.dependency_graph(function, effects, bodies_run_on_streams=True)
        nodes = zip(found(graph), graph.items, strict=True)
        return [(*node, [found(body) for body in item.bodies]) for node, item in nodes]


def found(graph: Any) -> Found:
    return [(item.op.name, sorted(item.node.before)) for item in graph.items]


def before(text: str) -> list[list[int]]:
    return [earlier for _, earlier, _ in graph_of(text)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # reads follow writes and writes follow reads
        ((launch("inc", "a"), launch("twice", "a", "b"), launch("inc", "a")), [[], [0], [0, 1]]),
        ((launch("twice", "a", "b"), launch("twice", "a", "c")), [[], []]),  # two reads
        ((launch("twice", "a", "c"), launch("twice", "b", "c")), [[], [0]]),  # two writes
        # nothing follows a free
        ((*USED, free("d"), alloc("e"), launch("inc", "e")), [[], [0], [0, 1], [], [3]]),
        # memory that the host shares is not work of the device
        ((f"%d = gpu.alloc host_shared () : {BUFFER}", copy("d", "a"), *store("d")), [[], [0], [0, 1]]),
    ],
)
def test_work_follows_what_it_conflicts_with_alone(lines: tuple[str, ...], expected: list[list[int]]) -> None:
    assert before(host_function(*lines, buffers="abc")) == expected


def test_a_view_is_its_buffer_and_parts_follow_what_they_overlap_with() -> None:
    part = "memref<4xf32, strided<[1], offset: 4>>"
    view = f"%v = memref.subview %a[4] [4] [1] : {BUFFER} to {part}"
    cast = f"%w = memref.cast %v : {part} to {part.replace('4xf32', '?xf32')}"
    load = f"%x = memref.load %w[%c0] : {part.replace('4xf32', '?xf32')}"
    assert graph_of(host_function(launch("inc", "a"), view, cast, load))[1:] == [("memref.load", [0], [])]
    assert launches(texts.HALVES) == [[], [], [0], [1], [0, 2], [1, 3]]
    assert launches(texts.OVERLAPPING_PARTS) == [[], [], [0], [1], [0, 1, 2, 3], [0, 2, 4], [1, 3, 4]]
    assert graph_of(texts.HALVES)[-1][:2] == ("gpu.dealloc", [0, 5, 6, 7, 8, 9, 10])  # after all parts
    dynamic = texts.HALVES.replace("%w[16]", "%w[%c16]").replace("[1], offset: 16>>", "[1], offset: ?>>")
    assert launches(dynamic)[1] == [0]
    spread = "gpu.func @inc_part(%p: memref<16xf32, strided<[1], offset: ?>>) kernel {"
    all_ = "%all = memref.reinterpret_cast %p to offset: [0], sizes: [32], strides: [1]"
    kinds = "memref<16xf32, strided<[1], offset: ?>> to memref<32xf32>"
    load = "%zero = arith.constant 0 : index\n%u = memref.load %all[%zero] : memref<32xf32>"
    text = texts.HALVES.replace(spread, f"{spread}\n{all_} : {kinds}\n{load}")
    assert launches(text)[2:4] == [[0, 1], [0, 1, 2]]


def launches(text: str) -> list[list[int]]:
    nodes = graph_of(text)
    launches = [number for number, node in enumerate(nodes) if node[0] == "gpu.launch_func"]
    return [[launches.index(each) for each in nodes[number][1] if each in launches] for number in launches]


def test_the_host_takes_part_where_it_touches_buffers_in_loops_and_by_pointers_too() -> None:
    text = host_function(launch("inc", "a"), *store("b"), *store("a"), "memref.dealloc %a : memref<16xf32>")
    names = [name for name, _, _ in graph_of(text)]
    assert names == ["gpu.launch_func", *["memref.load", "memref.store"] * 2, "memref.dealloc"]
    assert before(text) == [[], [], [1], [0], [0, 3], [0, 3, 4]]
    items = graph_of(host_function(*LOOP, launch("inc", "b")))
    assert [item[:2] for item in items] == [("scf.for", []), ("gpu.launch_func", [0])]
    host = [("memref.load", [BEGIN]), ("memref.store", [BEGIN, 1])]
    assert items[0][2] == [[("gpu.launch_func", []), *host, ("gpu.memcpy", [0, 1, 2])]]
    text = host_function(launch("inc", "a"), launch("any", "p"), launch("inc", "b"), others="%p: !llvm.ptr")
    text = text.replace("args(%p : memref<16xf32>)", "args(%p : !llvm.ptr)")
    kernel = "gpu.func @any(%p: !llvm.ptr) kernel {\n %v = llvm.load %p : !llvm.ptr -> f32\n gpu.return\n }\n"
    assert before(text.replace("gpu.func @inc", f"{kernel} gpu.func @inc", 1)) == [[], [0], [1]]


def test_a_branch_or_loop_of_the_host_waits_for_work_before_it_and_is_one_node() -> None:
    options = {"buffers": "abc", "others": "%flag: i1"}
    items = graph_of(host_function(copy("b", "c"), *BRANCH, **options))
    host = [("memref.load", [BEGIN]), ("memref.store", [BEGIN, 0])]
    assert items[1] == ("scf.if", [0], [[*host, ("gpu.launch_func", [])]])
    items = graph_of(host_function(copy("b", "c"), LOAD, *BRANCH, **options))  # it has waited before
    assert [earlier for _, earlier in items[-1][2][0]] == [[], [0], []]
    items = graph_of(host_function(*BRANCH, launch("inc", "b"), launch("inc", "a"), others="%flag: i1"))
    assert [item[1] for item in items] == [[], [], [0]]  # nothing waits for what the host did in a branch
    branch = ("scf.if %flag {", *store("b"), launch("inc", "b"), "}")
    bodies = graph_of(host_function(*branch, others="%flag: i1"))[0][2]
    assert bodies == [[("memref.load", []), ("memref.store", [0]), ("gpu.launch_func", [0, 1])]]
    with texts.main_function(host_function(*LOOP)) as (module, function):
        effects = kernel_effects.KernelEffects(module)
        graph = dependency_graph.dependency_graph(function, effects, bodies_run_on_streams=False)
        assert [(item.op.name, item.node.kind) for item in graph.items] == [("scf.for", NodeKind.HOST)]
        assert BEGIN not in set().union(*(node.before for node in graph.items[0].bodies[0].nodes))
    loop = ("scf.for %i = %c0 to %n step %c1 {", *store("b"), "}")
    nodes = graph_of(host_function(launch("inc", "b"), *loop))
    assert nodes == [("gpu.launch_func", [], []), ("scf.for", [0], [])]


@pytest.mark.parametrize(("options", "text"), cases(text_beside(__file__, "REFUSED")))
def test_other_control_flow_and_tokens_are_refused(options: dict[str, str], text: str) -> None:
    with pytest.raises(CandidateError, match=options["refused"]):
        graph_of(host_function(text))


# Loops of random work: streams that go on from iteration to iteration keep every dependence.

ITERATIONS = 3
Place = tuple[int, int]  # iteration, node


def touching(reads: Any, writes: Any) -> Any:
    one, other = (frozenset(map(buffer_accesses.BufferPart, names)) for names in (reads, writes))
    return buffer_accesses.Accesses(one, other)


def node(kind: Any, reads: str = "", writes: str = "", inside: str = "") -> Any:
    """Returns a node that touches buffers named by letters; the host writes those inside."""
    return dependency_graph.NodeAccesses(kind, touching(reads, writes), touching("", inside))


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
        made.append(Node(each.kind, frozenset(before)))
    return tuple(made)


def planned(body: tuple[Any, ...], limit: int = 99) -> StreamPlan:
    carried = dependency_graph.carried_dependences(body)
    return plan_streams(nodes_of(body), has_caller=True, limit=limit, carried=carried)


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
    pairs = combinations(places, 2)
    return {(u, v) for u, v in pairs if body[u[1]].own.conflicts_with(body[v[1]].own)}


def ordered(done: dict[Place, set[Place]]) -> set[tuple[Place, Place]]:
    return {(one, other) for other, earlier in done.items() for one in earlier}


@settings(max_examples=60)
@given(bodies(), st.sampled_from([1, 2, 99]))
def test_streams_that_go_on_keep_every_dependence(body: tuple[Any, ...], limit: int) -> None:
    plan = planned(body, limit)
    assert plan.slots <= limit
    assert required(body) <= ordered(before_each(plan))


@settings(max_examples=60, derandomize=True)
@given(bodies(hosts=0))
def test_no_wait_of_a_loop_can_be_left_out(body: tuple[Any, ...]) -> None:
    plan = planned(body)
    assert plan.carried_waits is not None
    waits = sum(len(step.waits) for step in plan.steps) + len(plan.last_waits) + len(plan.carried_waits)
    assert all(not required(body) <= ordered(before_each(plan, skipped=wait)) for wait in range(waits))


def test_the_host_waits_for_what_it_reads_and_conflicts_between_iterations_are_carried() -> None:
    body = (*(node(NodeKind.WORK, writes=each) for each in "ab"), node(NodeKind.HOST, reads="a"))
    plan = planned(body)
    assert [step.waits for step in plan.steps] == [(), (), (0,)]
    assert (plan.slots, plan.last_waits, plan.carried_waits) == (2, (), ())
    carried: Any = dependency_graph.carried_dependences
    work, other = node(NodeKind.WORK, writes="a"), node(NodeKind.WORK, writes="b")
    assert carried([work, other]) == set()
    assert carried([work, node(NodeKind.WORK, reads="a", writes="b")]) == {(0, 1), (1, 0)}
    assert carried([work, node(NodeKind.HOST, reads="a")]) == {(0, BEGIN)}
    assert carried([work, node(NodeKind.WORK, writes="b", inside="a")]) == {(0, 1), (0, BEGIN)}


@pytest.mark.parametrize("kind", [NodeKind.ALLOCATION, NodeKind.FREE])
def test_memory_that_other_iterations_use_keeps_the_joins(kind: Any) -> None:
    work, carried = node(NodeKind.WORK, writes="a"), dependency_graph.carried_dependences
    assert carried([work, node(kind, writes="a")]) is None
    assert carried([work, node(kind, writes="a").without({"a"})]) == frozenset()


# Launches that tokens leave unordered stay so where kernels meet in memory that they use atomically.

ONE = "(%c1, %c1, %c1)"
PLAIN = f"gpu.launch_func @m::@count blocks in {ONE} threads in {ONE} args(%a : memref<i32>)\n"


def launched(result: str, after: str, kernel: str = "count") -> str:
    begin = f"{result} = gpu.launch_func async [{after}]"
    return PLAIN.replace("gpu.launch_func", begin).replace("count", kernel)


def dependences(body: str) -> list[list[int]]:
    with parsed(text_beside(__file__, "MODULE").replace("BODY", body)) as module:
        function = walking.walk(module, "func.func")[0]
        dependency_graph.record_launch_order(module, function)
        async_ops.drop_tokens(function)
        effects = kernel_effects.KernelEffects(module)
        graph = dependency_graph.dependency_graph(function, effects, bodies_run_on_streams=True)
        dependency_graph.erase_launch_order(function)
        assert "tuner.launch" not in str(module)
        return [sorted(item.node.before) for item in graph.items]


def test_launches_of_streams_that_no_token_orders_may_run_together() -> None:
    assert dependences(launched("%x", "%s") + launched("%y", "%t") + "gpu.wait [%x, %y]") == [[], []]


@pytest.mark.parametrize(
    "body",
    [
        launched("%x", "%s") + launched("%y", "%x"),
        launched("%x", "%s") + "%z = gpu.wait async [%x]\n" + launched("%y", "%z"),
        launched("%x", "%s") + "gpu.wait [%x]\n" + launched("%y", "%t"),
        launched("%x", "%s") + "gpu.wait\n" + launched("%y", "%t"),
        launched("%x", "%s") + launched("%y", "%t", "store"),  # a plain write
        launched("%x", "%s", "store") + launched("%y", "%t"),
        PLAIN + launched("%y", "%t"),
        launched("%x", "%s") + PLAIN,
    ],
)
def test_other_launches_on_the_same_memory_are_ordered(body: str) -> None:
    assert dependences(body) == [[], [0]]
