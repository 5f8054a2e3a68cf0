"""Loop-carried dependences: which work of an iteration must precede work of later iterations.

Takes the buffer accesses of a loop body's nodes; returns pairs (u, v): node v of every later iteration
depends on node u. Two conflicting nodes depend on each other in both directions: within an iteration program
order decides, between iterations these pairs do. Memory that an iteration allocates and does not yield is
different memory in the next iteration.

    scf.for %i = %c0 to %n step %c1 {
      gpu.launch_func @m::@twice ... args(%a, %b : ...)                // 0
      gpu.launch_func @m::@inc ... args(%a : memref<4xf32>)            // 1: after 0, and before 0 of the next
    }
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tuner.mlir.bindings import Block, Value
from tuner.mlir.effects.address_flow import is_buffer
from tuner.mlir.effects.buffer_accesses import Accesses, inside
from tuner.mlir.effects.buffer_regions import BufferPart
from tuner.mlir.effects.buffer_roots import roots_of
from tuner.mlir.effects.region_dataflow import last_of
from tuner.programs.lower.streams.stream_plan import BEGIN, NodeKind

# (node, node or BEGIN); BEGIN: the host waits for the node at the start of an iteration
Carried = frozenset[tuple[int, int]]
# freed by operations; memref.alloca may return the same memory again
ALLOCATIONS = ("memref.alloc", "gpu.alloc")


@dataclass(frozen=True)
class NodeAccesses:
    """The buffers that one unit of work in a loop body (a node of the dependency graph) reads and writes."""

    kind: NodeKind
    own: Accesses  # by the device; by the host for a host node
    inside: Accesses  # by the host inside device work

    def without(self, roots: set[Value]) -> "NodeAccesses":
        """Returns the accesses except those of the buffers in ``roots``."""
        return NodeAccesses(self.kind, without(self.own, roots), without(self.inside, roots))


def iteration_local_buffers(block: Block) -> set[Value]:
    """Returns the buffers that operations in a loop's body allocate and that the body does not yield.

    ``memref.alloca`` is not counted, since it may return the same memory again.
    """
    ops = [inner for op in block.operations for inner in inside(op.operation)]
    made = {op.results[0] for op in ops if op.name in ALLOCATIONS}
    handed_on = {root for each in last_of(block).operands if is_buffer(each.type) for root in roots_of(each)}
    return made - handed_on


def without(accesses: Accesses, roots: set[Value]) -> Accesses:
    """Returns ``accesses`` except those of the buffers in ``roots``."""

    def others(parts: Iterable[BufferPart]) -> frozenset[BufferPart]:
        return frozenset(part for part in parts if part.root not in roots)

    return Accesses(others(accesses.reads), others(accesses.writes), accesses.is_unknown)


def carried_dependences(nodes: Sequence[NodeAccesses]) -> Carried | None:
    """Returns the loop-carried dependences: pairs (u, v) of numbers of nodes.

    Node v of every later iteration depends on node u. v is BEGIN if the host waits for u at the start of an
    iteration. ``nodes`` are those of a loop's body, without accesses of memory local to an iteration. Returns
    None where nodes allocate or free memory that other iterations use: then an iteration begins after all
    work of the previous one.
    """
    if any(node.own for node in nodes if node.kind in (NodeKind.ALLOCATION, NodeKind.FREE)):
        return None
    works = [number for number, node in enumerate(nodes) if node.kind is NodeKind.WORK]
    return frozenset(
        pair for u in works for v, node in enumerate(nodes) for pair in _pairs(u, nodes[u].own, v, node)
    )


def _pairs(u: int, earlier: Accesses, v: int, node: NodeAccesses) -> set[tuple[int, int]]:
    """Returns the dependences of node v of later iterations on node u, which is device work."""
    is_host = node.kind is NodeKind.HOST
    pairs = set()
    if u != v and not is_host and (node.own.conflicts_with(earlier) or node.inside.conflicts_with(earlier)):
        pairs.add((u, v))
    if node.inside.conflicts_with(earlier) or (is_host and node.own.conflicts_with(earlier)):
        pairs.add((u, BEGIN))
    return pairs
