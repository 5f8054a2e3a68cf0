"""Dependences that a loop carries: which work of an iteration later iterations must come behind.

Takes what the nodes of a body touch; gives pairs (u, v): node v of every later iteration depends on node u.
Two nodes that conflict do so in both directions; in one iteration the text orders them, between iterations
this does. Memory that an iteration allocates and does not hand on is another one in the next.

    scf.for %i = %c0 to %n step %c1 {
      gpu.launch_func @m::@twice ... args(%a, %b : ...)                // 0
      gpu.launch_func @m::@inc ... args(%a : memref<4xf32>)            // 1: after 0, and before 0 of the next
    }
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tuner.mlir.bindings import Block, Value
from tuner.mlir.effects.buffer_accesses import Accesses, inside
from tuner.mlir.effects.buffer_regions import BufferPart
from tuner.mlir.effects.buffer_roots import is_buffer, roots_of
from tuner.mlir.effects.region_dataflow import last_of
from tuner.programs.lower.streams.stream_plan import BEGIN, NodeKind

Carried = frozenset[tuple[int, int]]  # (node, node or BEGIN); BEGIN: what the host waits for there
ALLOCATIONS = ("memref.alloc", "gpu.alloc")  # freed by ops: memref.alloca may get the same memory again


@dataclass(frozen=True)
class NodeAccesses:
    """What a node touches."""

    kind: NodeKind
    own: Accesses  # by the device, or by the host if it is the host's
    inside: Accesses  # by the host in work of the device

    def without(self, roots: set[Value]) -> "NodeAccesses":
        """Returns the accesses but for those of some buffers."""
        return NodeAccesses(self.kind, without(self.own, roots), without(self.inside, roots))


def own_memory(block: Block) -> set[Value]:
    """Returns the buffers that each iteration of a loop's body allocates, and does not hand on."""
    ops = [inner for op in block.operations for inner in inside(op.operation)]
    made = {op.results[0] for op in ops if op.name in ALLOCATIONS}
    handed_on = {root for each in last_of(block).operands if is_buffer(each.type) for root in roots_of(each)}
    return made - handed_on


def without(accesses: Accesses, roots: set[Value]) -> Accesses:
    """Returns accesses but for those of some buffers."""

    def others(parts: Iterable[BufferPart]) -> frozenset[BufferPart]:
        return frozenset(part for part in parts if part.root not in roots)

    return Accesses(others(accesses.reads), others(accesses.writes), accesses.is_unknown)


def carried_dependences(nodes: Sequence[NodeAccesses]) -> Carried | None:
    """Returns the pairs, given accesses without those of an iteration's own memory.

    None where memory is allocated or freed that other iterations use: its order is left to joins.
    """
    if any(node.own for node in nodes if node.kind in (NodeKind.ALLOCATION, NodeKind.FREE)):
        return None
    works = [number for number, node in enumerate(nodes) if node.kind is NodeKind.WORK]
    return frozenset(
        pair for u in works for v, node in enumerate(nodes) for pair in _pairs(u, nodes[u].own, v, node)
    )


def _pairs(u: int, earlier: Accesses, v: int, node: NodeAccesses) -> set[tuple[int, int]]:
    """Returns what node v of later iterations needs of node u, which the device does."""
    is_host = node.kind is NodeKind.HOST
    pairs = set()
    if u != v and not is_host and (node.own.conflicts_with(earlier) or node.inside.conflicts_with(earlier)):
        pairs.add((u, v))
    if node.inside.conflicts_with(earlier) or (is_host and node.own.conflicts_with(earlier)):
        pairs.add((u, BEGIN))
    return pairs
