"""Makes device work asynchronous by upstream's tokens, which ``gpu-to-llvm`` turns into streams and events.

A token used once goes on with its stream. ``gpu.wait async`` begins a new stream behind the tokens that it
takes, so it stands for forks and joins; ``gpu.wait`` lets the host wait, and destroys the streams of its
tokens. Every stream ends in one: else it would never be destroyed. Streams are created anew at each call.
"""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.passes.async_dag import Dag, async_dag
from tuner.mlir.passes.async_ops import make_async, wait_async, wait_on_host
from tuner.mlir.passes.carried_values import last_of
from tuner.mlir.passes.kernel_effects import KernelEffects
from tuner.mlir.passes.stream_plan import Plan, Step, plan_streams


def use_tokens(function: Any, effects: KernelEffects, limit: int) -> None:
    """Rewrites a function of synchronous device work; when it returns, all of it is done.

    ``limit`` bounds the streams at work in a block at a time. Device work in control flow is done when it is.
    """
    dag = async_dag(function, effects, bodies_run_on_streams=False)
    for op in reversed(_rewrite(dag, limit)):
        op.erase()


def _rewrite(dag: Dag, limit: int) -> list[Any]:
    """Rewrites a block and those inside; returns the ops that were replaced."""
    dead = [op for item in dag.items for body in item.bodies for op in _rewrite(body, limit)]
    plan = plan_streams(dag.nodes, has_caller=False, limit=limit)
    return dead + _Block(dag).rewrite(plan)


class _Block:
    """The tokens of one block while it is rewritten."""

    def __init__(self, dag: Dag) -> None:
        self._dag = dag
        self._tokens: dict[int, Any] = {}  # of nodes
        self._stream_of: dict[int, int] = {}  # node -> number of the stream that it went to
        self._ends: dict[int, int] = {}  # stream not yet waited for -> its last node
        self._current: dict[int, int] = {}  # slot of the plan -> stream that it goes on with
        self._count = 0  # streams so far
        self._dead: list[Any] = []

    def rewrite(self, plan: Plan) -> list[Any]:
        """Follows the plan; returns the ops that were replaced."""
        latest = -1
        previous: Any = None
        for step in plan.steps:
            op = self._dag.items[step.node].op
            if step.node < latest:  # a free that comes later than it was
                op.move_after(previous)
            latest = max(latest, step.node)
            self._take(step, op)
            previous = op
        self._end(plan)
        return self._dead

    def _take(self, step: Step, op: Any) -> None:
        with op.location, ir.InsertionPoint(op):
            if step.slot is None:
                self._wait_on_host(step.waits)
                return
            stream = self._current.get(step.slot)
            if stream is None or step.waits:
                dependency = wait_async([self._tokens[node] for node in step.waits])
                stream, self._count = self._count, self._count + 1
            else:
                dependency = self._tokens[self._ends[stream]]
        self._tokens[step.node] = make_async(op, dependency)
        self._dead.append(op)
        self._stream_of[step.node] = self._current[step.slot] = stream
        self._ends[stream] = step.node

    def _wait_on_host(self, waits: tuple[int, ...]) -> None:
        """Ends the streams that are at the nodes; waits for others in passing, on a stream for that."""
        if not waits:
            return
        passed = [node for node in waits if self._ends.get(self._stream_of[node]) != node]
        wait_on_host(
            [wait_async([self._tokens[node]]) if node in passed else self._tokens[node] for node in waits]
        )
        ended = {self._stream_of[node] for node in waits if node not in passed}
        self._ends = {stream: node for stream, node in self._ends.items() if stream not in ended}
        self._current = {slot: stream for slot, stream in self._current.items() if stream not in ended}

    def _end(self, plan: Plan) -> None:
        terminator = last_of(self._dag.block)
        waits = plan.last_waits
        for free in plan.last_frees:
            op = self._dag.items[free].op
            op.move_before(terminator)
            self._take(Step(free, 0, waits), op)
            waits = ()
        if self._ends:
            with terminator.location, ir.InsertionPoint(terminator):
                wait_on_host([self._tokens[node] for node in self._ends.values()])
