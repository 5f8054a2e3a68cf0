"""Makes device work asynchronous: on streams that are arguments of the function, or by upstream's tokens.

Both forms follow the dependency graph of the work and the plan that assigns its nodes to streams.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import chain

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import last_of
from tuner.mlir.effects.memory_effects import KernelEffects
from tuner.programs.streams.async_ops import StreamCalls, make_async, wait_async, wait_on_host
from tuner.programs.streams.dependency_graph import DependencyGraph, dependency_graph
from tuner.programs.streams.stream_plan import BEGIN, NodeKind, StreamPlan, StreamStep, plan_streams


@dataclass(frozen=True)
class BlockPlan:
    """The streams for the device work of a block of a host function, with the plans of its nested blocks."""

    graph: DependencyGraph
    plan: StreamPlan
    streams: tuple[int, ...]  # slot of the plan -> number of the function's stream
    bodies: tuple[tuple["BlockPlan", ...], ...]  # per node


def use_streams(function: Op, effects: KernelEffects, limit: int) -> int:
    """Makes a function's synchronous device work asynchronous, in place, on streams, its new last arguments.

    The first stream is the caller's: all work follows what was on it and precedes what is enqueued on it
    later, so that a call can be captured as a CUDA graph. The other streams are forked from it and joined to
    it by events; streams of an ``scf.for`` are forked before the loop and joined after it. The caller creates
    the streams once. Upstream's operations take tokens: ``gpu-to-llvm`` folds away a cast of a stream to a
    token.

    Returns the number of streams, at most ``limit``, at least one. The host waits for data before it reads
    them; the caller waits for the end of all work. A nested block uses the stream of its loop or branch, and
    further streams that no work outside the block uses.
        func.func @main(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>) {
          gpu.memcpy %b, %a : memref<4xf32>, memref<4xf32>
          gpu.memcpy %c, %a : memref<4xf32>, memref<4xf32>
      becomes, with ``event = record(stream)`` and the like for calls of mgpuEventRecord and its kind
        func.func @main(%a: ..., %b: ..., %c: ..., %s0: !llvm.ptr, %s1: !llvm.ptr) {
          %t0 = builtin.unrealized_conversion_cast %s0 : !llvm.ptr to !gpu.async.token
          %t1 = builtin.unrealized_conversion_cast %s1 : !llvm.ptr to !gpu.async.token
          %begin = record(%s0); wait(%s1, %begin)
          %0 = gpu.memcpy async [%t1] %b, %a : memref<4xf32>, memref<4xf32>
          %end = record(%s1)
          %1 = gpu.memcpy async [%t0] %c, %a : memref<4xf32>, memref<4xf32>
          wait(%s0, %end)
    """
    graph = dependency_graph(function, effects, bodies_run_on_streams=True)
    planner = _Planner(limit)
    plan = planner.plan(graph, 0)
    calls = StreamCalls(function, planner.count)
    for op in reversed(_rewrite(plan, calls)):
        op.erase()
    return planner.count


class _Planner:
    def __init__(self, limit: int) -> None:
        self._limit = max(limit, 1)
        self.count = 1

    def plan(self, graph: DependencyGraph, first: int) -> BlockPlan:
        """Plans a block whose first stream is ``first``; its other streams are new, up to the limit."""
        limit = 1 + self._limit - self.count
        plan = plan_streams(graph.nodes, has_caller=True, limit=limit, carried=graph.carried)
        streams = (first, *range(self.count, self.count + plan.slots - 1))
        self.count += plan.slots - 1
        stream_of = {step.node: streams[step.slot] for step in plan.steps if step.slot is not None}
        bodies = []
        for number, item in enumerate(graph.items):
            bodies.append(tuple(self.plan(body, stream_of[number]) for body in item.bodies))
        return BlockPlan(graph, plan, streams, tuple(bodies))


def _rewrite(block_plan: BlockPlan, calls: StreamCalls) -> list[Op]:
    dead: list[Op] = []
    for body in chain.from_iterable(block_plan.bodies):
        dead += _rewrite(body, calls)
    return dead + _Block(block_plan, calls).rewrite()


class _Block:
    """The rewrite of one block: its events, and how many waits for each event are still to be inserted."""

    def __init__(self, block_plan: BlockPlan, calls: StreamCalls) -> None:
        self._graph = block_plan.graph
        self._bodies = block_plan.bodies
        self._plan = block_plan.plan
        self._first = block_plan.streams[0]
        self._calls = calls
        self._stream_of = {BEGIN: self._first} | {
            step.node: block_plan.streams[step.slot] for step in self._plan.steps if step.slot is not None
        }
        self._whole = _whole_streams(self._graph, self._plan)
        carried = [(block_plan.streams[slot], node) for slot, node in self._plan.carried_waits or ()]
        self._last_waits = [*((self._first, node) for node in self._plan.last_waits), *carried]
        # node -> number of waits for its event still to be inserted
        self._awaited = Counter(node for _, node in self._last_waits)
        for step in self._plan.steps:
            self._awaited.update(wait for wait in step.waits if (step.node, wait) not in self._whole)
        self._events: dict[int, Value] = {}
        self._dead: list[Op] = []

    def rewrite(self) -> list[Op]:
        self._record_before(self._graph.block.operations[0].operation, BEGIN)
        latest = -1
        following: Op | None = None  # the operation before which a delayed deallocation is moved
        for step in self._plan.steps:
            op = self._graph.items[step.node].op
            if step.node < latest:
                op.move_before(following)
            else:
                latest = step.node
                following = next_op(op)
            self._take(step, op)
        self._end()
        return self._dead

    def _take(self, step: StreamStep, op: Op) -> None:
        with op.location, ir.InsertionPoint(op):
            for wait in step.waits:
                self._wait(step, wait)
        if step.slot is None:
            return
        if self._bodies[step.node]:
            following = next_op(op)
            for body in self._bodies[step.node]:
                if body.plan.carried_waits is not None:
                    self._fork_around(op, following, body.streams)
            self._record_before(following, step.node)
            return
        make_async(op, self._calls.tokens[self._stream_of[step.node]])
        self._dead.append(op)
        self._record_before(op, step.node)

    def _fork_around(self, loop: Op, following: Op, streams: tuple[int, ...]) -> None:
        """Forks a loop's streams from its first one before the loop, and joins them after the loop.

        A graph capture requires a join of streams used after it, also where the last iteration has joined.
        """
        first, *others = streams
        if not others:
            return
        with loop.location, ir.InsertionPoint(loop):
            begin = self._calls.record(first)
            for stream in others:
                self._calls.wait(stream, begin)
            self._calls.destroy(begin)
        with loop.location, ir.InsertionPoint(following):
            for stream in others:
                end = self._calls.record(stream)
                self._calls.wait(first, end)
                self._calls.destroy(end)

    def _wait(self, step: StreamStep, node: int) -> None:
        if (step.node, node) in self._whole:
            self._calls.synchronize_stream(self._stream_of[node])
            return
        if step.slot is None:
            self._calls.synchronize_event(self._events[node])
        else:
            self._calls.wait(self._stream_of[step.node], self._events[node])
        self._forget(node)

    def _record_before(self, point: Op, node: int) -> None:
        if self._awaited[node]:
            with point.location, ir.InsertionPoint(point):
                self._events[node] = self._calls.record(self._stream_of[node])

    def _forget(self, node: int) -> None:
        self._awaited[node] -= 1
        if not self._awaited[node]:
            self._calls.destroy(self._events[node])

    def _end(self) -> None:
        terminator = last_of(self._graph.block)
        with terminator.location, ir.InsertionPoint(terminator):
            for stream, node in self._last_waits:
                self._calls.wait(stream, self._events[node])
                self._forget(node)
        for free in self._plan.last_frees:
            op = self._graph.items[free].op
            op.move_before(terminator)
            make_async(op, self._calls.tokens[self._first])
            self._dead.append(op)


def next_op(op: Op) -> Op:
    """Returns the operation after ``op``, which must not be the terminator of its block."""
    following = iter(op.block.operations)
    while next(following).operation != op:
        pass
    return next(following).operation


def _whole_streams(graph: DependencyGraph, plan: StreamPlan) -> set[tuple[int, int]]:
    """Returns (host node, awaited node) where a wait for the stream serves: the node is its last so far."""
    last: dict[int | None, int] = {0: BEGIN}
    waits = set()
    for step in plan.steps:
        if step.slot is None:
            waits |= {(step.node, wait) for wait in step.waits if wait in last.values()}
        elif graph.nodes[step.node].kind is not NodeKind.FREE:
            last[step.slot] = step.node
    return waits


def use_tokens(function: Op, effects: KernelEffects, limit: int) -> None:
    """Makes a function's synchronous device work asynchronous, in place, by ``!gpu.async.token`` values.

    All work is done when the function returns, and a loop or branch ends when its device work is done.
    ``gpu-to-llvm`` lowers tokens to streams and events: work that takes a token continues on its stream.
    ``gpu.wait async`` begins a new stream after the tokens that it takes, so it expresses every fork and
    join; ``gpu.wait`` makes the host wait, and destroys the streams of its tokens, as every stream must be.
    Each call creates its streams, at most ``limit`` in a block at a time.

        gpu.memcpy %b, %a : memref<4xf32>, memref<4xf32>
        gpu.memcpy %c, %a : memref<4xf32>, memref<4xf32>
      becomes
        %0 = gpu.wait async
        %1 = gpu.memcpy async [%0] %b, %a : memref<4xf32>, memref<4xf32>
        %2 = gpu.wait async
        %3 = gpu.memcpy async [%2] %c, %a : memref<4xf32>, memref<4xf32>
        gpu.wait [%1, %3]
    """
    graph = dependency_graph(function, effects, bodies_run_on_streams=False)
    for op in reversed(_rewrite_tokens(graph, limit)):
        op.erase()


def _rewrite_tokens(graph: DependencyGraph, limit: int) -> list[Op]:
    dead: list[Op] = []
    for item in graph.items:
        for body in item.bodies:
            dead += _rewrite_tokens(body, limit)
    plan = plan_streams(graph.nodes, has_caller=False, limit=limit)
    return dead + _TokenBlock(graph).rewrite(plan)


class _TokenBlock:
    """The rewrite of one block: the tokens of its nodes, and the streams that the tokens represent."""

    def __init__(self, graph: DependencyGraph) -> None:
        self._graph = graph
        self._tokens: dict[int, Value] = {}  # node -> token
        self._stream_of: dict[int, int] = {}  # node -> number of its stream
        self._ends: dict[int, int] = {}  # stream not yet waited for -> its last node
        self._current: dict[int, int] = {}  # slot of the plan -> stream that the slot uses now
        self._count = 0  # number of streams so far
        self._dead: list[Op] = []

    def rewrite(self, plan: StreamPlan) -> list[Op]:
        latest = -1
        previous: Op | None = None
        for step in plan.steps:
            op = self._graph.items[step.node].op
            if step.node < latest:  # a delayed deallocation
                op.move_after(previous)
            latest = max(latest, step.node)
            self._take(step, op)
            previous = op
        self._end(plan)
        return self._dead

    def _take(self, step: StreamStep, op: Op) -> None:
        with op.location, ir.InsertionPoint(op):
            if step.slot is None:
                self._wait_on_host(step.waits)
                return
            stream = self._current.get(step.slot)
            if stream is None or step.waits:  # a step that waits for other nodes begins a new stream
                dependency = wait_async([self._tokens[node] for node in step.waits])
                stream = self._count
                self._count = self._count + 1
            else:
                dependency = self._tokens[self._ends[stream]]
        self._tokens[step.node] = make_async(op, dependency)
        self._dead.append(op)
        self._stream_of[step.node] = self._current[step.slot] = stream
        self._ends[stream] = step.node

    def _wait_on_host(self, waits: tuple[int, ...]) -> None:
        """Ends the streams whose last node is waited for; waits for earlier nodes on new streams."""
        if not waits:
            return
        passed = [node for node in waits if self._ends.get(self._stream_of[node]) != node]
        wait_on_host(
            [wait_async([self._tokens[node]]) if node in passed else self._tokens[node] for node in waits]
        )
        ended = {self._stream_of[node] for node in waits if node not in passed}
        self._ends = {stream: node for stream, node in self._ends.items() if stream not in ended}
        self._current = {slot: stream for slot, stream in self._current.items() if stream not in ended}

    def _end(self, plan: StreamPlan) -> None:
        terminator = last_of(self._graph.block)
        waits = plan.last_waits
        for free in plan.last_frees:
            op = self._graph.items[free].op
            op.move_before(terminator)
            self._take(StreamStep(free, 0, waits), op)
            waits = ()
        if self._ends:
            with terminator.location, ir.InsertionPoint(terminator):
                wait_on_host([self._tokens[node] for node in self._ends.values()])
