"""Makes a function's device work asynchronous by ``!gpu.async.token`` values, which MLIR lowers to streams.

The rewrite follows the dependency graph of the work and the plan that assigns its nodes to streams.
"""

from tuner.gpu.streams.async_ops import make_async, wait_async, wait_on_host
from tuner.gpu.streams.dependency_graph import DependencyGraph, dependency_graph
from tuner.gpu.streams.stream_plan import StreamPlan, StreamStep, plan_streams
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import last_of
from tuner.mlir.effects.memory_effects import KernelEffects


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
