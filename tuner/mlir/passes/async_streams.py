"""Makes device work asynchronous on streams that are arguments of the function, in its last places.

The first stream is the caller's: all work follows what was on it and precedes what comes on it later, so a
call can be captured as a CUDA graph. Others are forked from it and joined to it by events. Nothing is created
here but events: whoever calls creates the other streams once.

Upstream's ops take tokens, not streams; a cast of the stream to a token is what ``gpu-to-llvm`` folds away.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.passes.async_dag import Dag, async_dag
from tuner.mlir.passes.async_ops import make_async
from tuner.mlir.passes.carried_values import last_of
from tuner.mlir.passes.kernel_effects import KernelEffects
from tuner.mlir.passes.stream_calls import StreamCalls
from tuner.mlir.passes.stream_plan import BEGIN, Kind, Plan, Step, plan_streams


@dataclass(frozen=True)
class BlockPlan:
    """What the streams do in a block, and in those inside of it."""

    dag: Dag
    plan: Plan
    streams: tuple[int, ...]  # number of the function's stream for each slot of the plan
    bodies: tuple[tuple["BlockPlan", ...], ...]  # of each item


def use_streams(function: Any, effects: KernelEffects, limit: int) -> int:
    """Rewrites a function of synchronous device work; returns how many streams it takes, at least one.

    What the host reads it waits for; that all work is done, it leaves to the caller. Of the arguments, host
    memory must be ready when the function is called, device memory when the caller's stream comes to the
    call. The streams of a block inside are its own, but for the one that it was put on: work beside it has
    others.
    """
    dag = async_dag(function, effects, bodies_run_on_streams=True)
    planner = _Planner(limit)
    plan = planner.plan(dag, 0)
    calls = StreamCalls(function, planner.count)
    for op in reversed(_rewrite(plan, calls)):
        op.erase()
    return planner.count


class _Planner:
    """Gives out the streams of a function."""

    def __init__(self, limit: int) -> None:
        self._limit = max(limit, 1)
        self.count = 1

    def plan(self, dag: Dag, first: int) -> BlockPlan:
        """Plans a block whose first stream is given; it takes new ones beside it while there are any."""
        plan = plan_streams(dag.nodes, has_caller=True, limit=1 + self._limit - self.count)
        streams = (first, *range(self.count, self.count + plan.slots - 1))
        self.count += plan.slots - 1
        stream_of = {step.node: streams[step.slot] for step in plan.steps if step.slot is not None}
        bodies = tuple(
            tuple(self.plan(body, stream_of[number]) for body in item.bodies)
            for number, item in enumerate(dag.items)
        )
        return BlockPlan(dag, plan, streams, bodies)


def _rewrite(block_plan: BlockPlan, calls: StreamCalls) -> list[Any]:
    """Rewrites a block and those inside; returns the ops that were replaced."""
    dead = [op for bodies in block_plan.bodies for body in bodies for op in _rewrite(body, calls)]
    return dead + _Block(block_plan, calls).rewrite()


class _Block:
    """The events of one block while it is rewritten."""

    def __init__(self, block_plan: BlockPlan, calls: StreamCalls) -> None:
        self._dag = block_plan.dag
        self._plan = block_plan.plan
        self._first = block_plan.streams[0]
        self._calls = calls
        self._stream_of = {BEGIN: self._first} | {
            step.node: block_plan.streams[step.slot] for step in self._plan.steps if step.slot is not None
        }
        self._whole = _whole_streams(self._dag, self._plan)
        self._awaited = Counter(self._plan.last_waits)  # node -> waits for its event that are to come
        for step in self._plan.steps:
            self._awaited.update(wait for wait in step.waits if (step.node, wait) not in self._whole)
        self._events: dict[int, Any] = {}
        self._dead: list[Any] = []

    def rewrite(self) -> list[Any]:
        """Follows the plan; returns the ops that were replaced."""
        self._record_before(self._dag.block.operations[0].operation, BEGIN)
        latest = -1
        behind: Any = None  # where a free goes that comes later than it was
        for step in self._plan.steps:
            op = self._dag.items[step.node].op
            if step.node < latest:
                op.move_before(behind)
            else:
                latest = step.node
                behind = next_op(op)
            self._take(step, op)
        self._end()
        return self._dead

    def _take(self, step: Step, op: Any) -> None:
        with op.location, ir.InsertionPoint(op):
            for wait in step.waits:
                self._wait(step, wait)
        if step.slot is None:
            return
        if self._dag.items[step.node].bodies:
            self._record_before(next_op(op), step.node)
            return
        make_async(op, self._calls.tokens[self._stream_of[step.node]])
        self._dead.append(op)
        self._record_before(op, step.node)

    def _wait(self, step: Step, node: int) -> None:
        if (step.node, node) in self._whole:
            self._calls.synchronize_stream(self._stream_of[node])
            return
        if step.slot is None:
            self._calls.synchronize_event(self._events[node])
        else:
            self._calls.wait(self._stream_of[step.node], self._events[node])
        self._forget(node)

    def _record_before(self, place: Any, node: int) -> None:
        if self._awaited[node]:
            with place.location, ir.InsertionPoint(place):
                self._events[node] = self._calls.record(self._stream_of[node])

    def _forget(self, node: int) -> None:
        self._awaited[node] -= 1
        if not self._awaited[node]:
            self._calls.destroy(self._events[node])

    def _end(self) -> None:
        """Joins the other streams to the first one, and frees behind that."""
        terminator = last_of(self._dag.block)
        with terminator.location, ir.InsertionPoint(terminator):
            for node in self._plan.last_waits:
                self._calls.wait(self._first, self._events[node])
                self._forget(node)
        for free in self._plan.last_frees:
            op = self._dag.items[free].op
            op.move_before(terminator)
            make_async(op, self._calls.tokens[self._first])
            self._dead.append(op)


def next_op(op: Any) -> Any:
    """Returns the op behind one that ends no block."""
    following = iter(op.block.operations)
    while next(following).operation != op:
        pass
    return next(following).operation


def _whole_streams(dag: Dag, plan: Plan) -> set[tuple[int, int]]:
    """Returns (step, what it waits for) where the host can wait for all of a stream: nothing comes behind."""
    last: dict[int | None, int] = {0: BEGIN}
    found = set()
    for step in plan.steps:
        if step.slot is None:
            found |= {(step.node, wait) for wait in step.waits if wait in last.values()}
        elif dag.nodes[step.node].kind is not Kind.FREE:
            last[step.slot] = step.node
    return found
