"""Makes a function's device work asynchronous on streams, which become arguments of the function.

The rewrite follows the dependency graph of the work and the plan that assigns its nodes to streams.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import chain

from tuner.gpu.streams.async_ops import make_async
from tuner.gpu.streams.dependency_graph import DependencyGraph, dependency_graph
from tuner.gpu.streams.stream_calls import StreamCalls
from tuner.gpu.streams.stream_plan import BEGIN, NodeKind, StreamPlan, StreamStep, plan_streams
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import last_of
from tuner.mlir.effects.memory_effects import KernelEffects


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
        for index, item in enumerate(graph.items):
            bodies.append(tuple(self.plan(body, stream_of[index]) for body in item.bodies))
        return BlockPlan(graph, plan, streams, tuple(bodies))


def _rewrite(block_plan: BlockPlan, calls: StreamCalls) -> list[Op]:
    dead: list[Op] = []
    for body in chain.from_iterable(block_plan.bodies):
        dead += _rewrite(body, calls)
    return dead + _Block(block_plan, calls).rewrite()


class _Block:
    """The rewrite of one block: its events, and how many waits for each event remain to be inserted."""

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
    """Returns (host node, awaited node) of the host's waits that may be for a whole stream.

    The awaited node is then the last one that was put on its stream before.
    """
    last: dict[int | None, int] = {0: BEGIN}
    waits = set()
    for step in plan.steps:
        if step.slot is None:
            waits |= {(step.node, wait) for wait in step.waits if wait in last.values()}
        elif graph.nodes[step.node].kind is not NodeKind.FREE:
            last[step.slot] = step.node
    return waits
