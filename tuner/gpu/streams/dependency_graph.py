"""The data dependences between a host function's device work, also between iterations of a loop.

It also records which launches a program's own tokens leave unordered.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from tuner.gpu.streams.async_ops import has_tokens
from tuner.gpu.streams.stream_plan import BEGIN, Node, NodeKind
from tuner.mlir.bindings import Block, Op, Value, ir
from tuner.mlir.effects.accesses import (
    NONE,
    Accesses,
    BufferPart,
    accesses_without_atomics,
    device_accesses,
    has_device_work,
    host_accesses,
    inside,
    is_device_work,
    union,
)
from tuner.mlir.effects.aliases import is_buffer, is_token, last_of, roots_of
from tuner.mlir.effects.memory_effects import ATOMIC, KernelEffects
from tuner.mlir.ir.reading import ops_in, unsupported, walk

# (u, v): node v of the next iteration waits for node u; v is BEGIN: the host waits at the iteration's start.
# Among the dependences of a node, BEGIN stands for device work from before the block.
Carried = frozenset[tuple[int, int]]
# freed by operations; memref.alloca may return the same memory again
ALLOCATIONS = ("memref.alloc", "gpu.alloc")


LOOPS = frozenset({"scf.for", "scf.while"})
ONCE = frozenset({"scf.if", "scf.index_switch", "memref.alloca_scope"})  # regions that run at most once
KINDS = {"gpu.alloc": NodeKind.ALLOCATION, "gpu.dealloc": NodeKind.FREE}
# a launch's number in its block, then the numbers of the launches that it is ordered after
LAUNCH_ORDER = "tuner.launch"
LAUNCH = "gpu.launch_func"
WAIT = "gpu.wait"


@dataclass(frozen=True)
class GraphNode:
    """A node of the graph with its operation.

    ``bodies``: a nested graph per block, if the operation is a loop or branch with device work.
    """

    op: Op
    node: Node
    bodies: tuple["DependencyGraph", ...] = ()


@dataclass(frozen=True)
class DependencyGraph:
    """The data dependences of a host function: per block, a graph of its device work and of its host work.

    A node depends on earlier nodes that access the same part of a buffer, where one of the two writes it.

        gpu.memcpy %d, %a : memref<4xf32>, memref<4xf32>                   // 0
        gpu.launch_func @m::@inc ... args(%d : memref<4xf32>)              // 1, depends on 0
        gpu.memcpy %a, %d : memref<4xf32>, memref<4xf32>                   // 2, depends on 0 and 1
        %v = memref.load %a[%c0] : memref<4xf32>                           // 3, the host's, depends on 2
    """

    block: Block
    items: tuple[GraphNode, ...]
    # of a loop's body; None: an iteration begins after all work of the previous iteration
    carried: Carried | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Returns the nodes in program order; their dependences are indices in this tuple, or BEGIN (-1)."""
        return tuple(item.node for item in self.items)


def dependency_graph(function: Op, effects: KernelEffects, *, bodies_run_on_streams: bool) -> DependencyGraph:
    """Returns the graph of data dependences between the device work and host work of a function.

    A loop or branch with device work is one node. If ``bodies_run_on_streams`` it is work on a stream: the
    host enters it at once, and inside waits only where a host access depends on device work. Else it is host
    work: when it ends, the device work in it is done.
    Raises CandidateError(COMPILE) for several blocks, async tokens, and device work in operations other than
    scf.for, scf.while, scf.if, scf.index_switch and memref.alloca_scope.
    """
    blocks = list(function.regions[0].blocks)
    if len(blocks) != 1:
        raise unsupported(
            function, f"{len(blocks)} blocks", "one: control flow by scf.for, scf.while and scf.if"
        )
    return _Builder(effects, bodies_run_on_streams=bodies_run_on_streams).graph(blocks[0], NONE)


class _Builder:
    def __init__(self, effects: KernelEffects, *, bodies_run_on_streams: bool) -> None:
        self._effects = effects
        self._on_streams = bodies_run_on_streams

    def graph(self, block: Block, unfinished: Accesses) -> DependencyGraph:
        """Returns a block's graph; ``unfinished``: device accesses that may not be done when it begins."""
        items = _Items(unfinished)
        for op in block.operations:
            self._add(items, op.operation)
        repeats = self._on_streams and block.owner.name == "scf.for"
        return DependencyGraph(block, tuple(items.items), items.carried(block) if repeats else None)

    def _add(self, items: "_Items", op: Op) -> None:
        if is_device_work(op):
            if has_tokens(op):
                raise unsupported(op, "async tokens", "synchronous device work: tokens are made here")
            kind = KINDS.get(op.name, NodeKind.WORK)
            is_kernel = op.name == "gpu.launch_func"
            without_atomics = accesses_without_atomics(op, self._effects) if is_kernel else None
            accesses = device_accesses(op, self._effects)
            items.add(op, kind, accesses, is_kernel=is_kernel, without_atomics=without_atomics)
        elif has_device_work(op):
            self._add_region(items, op)
        elif accesses := host_accesses(op):
            items.add(op, NodeKind.HOST, accesses)

    def _add_region(self, items: "_Items", op: Op) -> None:
        if op.name not in LOOPS | ONCE:
            raise unsupported(op, "device work inside", ", ".join(sorted(LOOPS | ONCE)))
        on_device = device_accesses(op, self._effects)
        on_host = host_accesses(op)
        blocks = list(chain.from_iterable(region.blocks for region in op.regions))
        unfinished = NONE
        if self._on_streams:
            own = set(chain.from_iterable(map(iteration_local_buffers, blocks)))
            earlier_iterations = without(on_device, own) if op.name in LOOPS else NONE
            unfinished = union((earlier_iterations, items.unfinished(union((on_device, on_host)))))
        bodies = tuple(self.graph(block, unfinished) for block in blocks)
        if self._on_streams:
            # is_kernel: on the stream of kernels, where copies are on others
            items.add(op, NodeKind.WORK, on_device, on_host, bodies, is_kernel=True)
        else:
            items.add(op, NodeKind.HOST, union((on_device, on_host)), NONE, bodies)


class _Items:
    """The nodes of a block so far, the accesses of each, and what the host has waited for."""

    def __init__(self, unfinished: Accesses) -> None:
        self.items: list[GraphNode] = []
        self._nodes: list[NodeAccesses] = []
        self._earlier: list[frozenset[int]] = []  # node -> its transitive dependences, BEGIN included
        self._without_atomics: dict[int, Accesses] = {}  # of the nodes that are launches
        self._done: frozenset[int] = frozenset()  # nodes that the host knows to be done
        self._unfinished_before = unfinished

    def add(
        self,
        op: Op,
        kind: NodeKind,
        accesses: Accesses,
        # by the host in device work: they depend on other nodes, but no node depends on them
        host_inside: Accesses = NONE,
        bodies: tuple[DependencyGraph, ...] = (),
        *,
        is_kernel: bool = False,
        without_atomics: Accesses | None = None,  # of a launch
    ) -> None:
        before = self._dependences(union((accesses, host_inside)))
        if without_atomics is not None:
            before -= {
                number for number in before if self._meet_in_atomics(number, op, accesses, without_atomics)
            }
            self._without_atomics[len(self.items)] = without_atomics
        if kind is NodeKind.HOST and accesses.conflicts_with(self._unfinished_before):
            before |= {BEGIN}
        self.items.append(GraphNode(op, Node(kind, before, is_kernel), bodies))
        self._nodes.append(NodeAccesses(kind, accesses, host_inside))
        earlier = before.union(*(self._earlier[number] for number in before - {BEGIN}))
        self._earlier.append(earlier)
        if kind is NodeKind.HOST:
            self._done |= earlier

    def carried(self, block: Block) -> Carried | None:
        """Returns the loop-carried dependences of a loop's body ``block``, as ``carried_dependences`` does.

        None where an iteration must begin after all work of the previous one.
        """
        own = iteration_local_buffers(block)
        return carried_dependences([node.without(own) for node in self._nodes])

    def unfinished(self, accesses: Accesses) -> Accesses:
        """Returns device accesses that ``accesses`` depend on and that the host has not waited for."""
        unfinished = (number for number in self._dependences(accesses) - self._done)
        works = (
            self._nodes[number].own
            for number in unfinished
            if self.items[number].node.kind is not NodeKind.HOST
        )
        return union((NONE if BEGIN in self._done else self._unfinished_before, *works))

    def _meet_in_atomics(self, number: int, op: Op, accesses: Accesses, without_atomics: Accesses) -> bool:
        """True if two launches conflict only by atomics on the same memory, and tokens do not order them."""
        plain = self._without_atomics.get(number)
        if plain is None or not may_run_together(self.items[number].op, op):
            return False
        is_plain = plain.conflicts_with(accesses) or self._nodes[number].own.conflicts_with(without_atomics)
        return not is_plain

    def _dependences(self, accesses: Accesses) -> frozenset[int]:
        """Returns the nodes on which a node with ``accesses`` depends: those that conflict, except frees."""
        return frozenset(
            index
            for index, earlier in enumerate(self._nodes)
            if earlier.kind is not NodeKind.FREE and earlier.own.conflicts_with(accesses)
        )


@dataclass(frozen=True)
class NodeAccesses:
    """The buffers that one node of the graph of a loop body reads and writes."""

    kind: NodeKind
    own: Accesses  # by the device; by the host for a host node
    host_inside: Accesses  # by the host inside device work

    def without(self, roots: set[Value]) -> "NodeAccesses":
        """Returns the accesses without those to the buffers in ``roots``."""
        return NodeAccesses(self.kind, without(self.own, roots), without(self.host_inside, roots))


def iteration_local_buffers(block: Block) -> set[Value]:
    """Returns the buffers that a loop's body allocates and does not yield.

    Stack memory (``memref.alloca``) is not among them.
    """
    ops = chain.from_iterable(inside(op.operation) for op in block.operations)
    allocated = {op.results[0] for op in ops if op.name in ALLOCATIONS}
    yielded = [operand for operand in last_of(block).operands if is_buffer(operand.type)]
    return allocated.difference(*map(roots_of, yielded))


def without(accesses: Accesses, roots: set[Value]) -> Accesses:
    """Returns ``accesses`` without those to the buffers in ``roots``."""

    def others(parts: Iterable[BufferPart]) -> frozenset[BufferPart]:
        return frozenset(part for part in parts if part.root not in roots)

    return Accesses(others(accesses.reads), others(accesses.writes), accesses.is_unknown)


def carried_dependences(nodes: Sequence[NodeAccesses]) -> Carried | None:
    """Returns the loop-carried dependences (u, v): node v of every later iteration depends on node u.

    v is BEGIN if the host waits for u at the start of an iteration. ``nodes`` are those of a loop's body,
    without iteration-local accesses. Returns None where nodes allocate or free memory that other iterations
    use: then an iteration begins after all work of the previous one.

        scf.for %i = %c0 to %n step %c1 {
          gpu.launch_func @m::@twice ... args(%a, %b : ...)                // 0
          gpu.launch_func @m::@inc ... args(%a : memref<4xf32>)        // 1: after 0, and before 0 of the next
        }
    """
    if any(node.own for node in nodes if node.kind in (NodeKind.ALLOCATION, NodeKind.FREE)):
        return None
    works = [index for index, node in enumerate(nodes) if node.kind is NodeKind.WORK]
    pairs: set[tuple[int, int]] = set()
    for u in works:
        for v, node in enumerate(nodes):
            is_host = node.kind is NodeKind.HOST
            meets, meets_inside = (
                accesses.conflicts_with(nodes[u].own) for accesses in (node.own, node.host_inside)
            )
            # device work waits for u on its stream; u itself does not: its stream is in order
            if u != v and not is_host and (meets or meets_inside):
                pairs.add((u, v))
            # host work, and host accesses inside device work, wait for u before the iteration begins
            if meets_inside or (is_host and meets):
                pairs.add((u, BEGIN))
    return frozenset(pairs)


# Attributes that record which launches the tokens of a program leave unordered.


def record_launch_order(module: ir.Module, function: Op) -> None:
    """Records in attributes which launches of a function its tokens leave unordered, if kernels have atomics.

    Later the tokens are dropped and order is computed anew from data (``dependency_graph``). By data, kernels
    that both update a counter would run one after the other, and a kernel that waits for the other one to
    count would wait for ever. So memory that two recorded kernels only use atomically does not order them.
        %2 = gpu.launch_func async [%0] @m::@k ... args(%counter : memref<i32>)
        %3 = gpu.launch_func async [%1] @m::@k ... args(%counter : memref<i32>)    // not after %2
      becomes, until ``erase_launch_order``
        %2 = gpu.launch_func async [%0] @m::@k ... args(%counter : memref<i32>) {tuner.launch = array<i64: 0>}
        %3 = gpu.launch_func async [%1] @m::@k ... args(%counter : memref<i32>) {tuner.launch = array<i64: 1>}
    """
    if not walk(module, *ATOMIC):
        return
    for block in {launch.block for launch in walk(function, LAUNCH)}:
        done_at: dict[Value, frozenset[int]] = {}  # token -> launches that are done when the token is
        waited: frozenset[int] = frozenset()  # launches that the host has waited for
        count = 0
        for op in ops_in(block):
            everything = frozenset(range(count))
            taken = [done_at.get(operand, everything) for operand in op.operands if is_token(operand)]
            before = waited.union(*taken)
            tokens = list(filter(is_token, op.results))
            if op.name == LAUNCH and tokens:
                op.attributes[LAUNCH_ORDER] = ir.DenseI64ArrayAttr.get([count, *sorted(before)])
                before |= {count}
                count += 1
            elif op.name == WAIT and not tokens:
                waited = before if taken else everything
            elif has_device_work(op) and not (is_device_work(op) and tokens):
                waited = everything
            done_at |= dict.fromkeys(tokens, before)


def may_run_together(launch: Op, later: Op) -> bool:
    """Returns whether the program's tokens leave two launches of a block unordered.

    ``launch`` is the earlier one in the text. False without attributes of ``record_launch_order``.
    """
    if (
        LAUNCH_ORDER not in launch.attributes
        or LAUNCH_ORDER not in later.attributes
        or launch.block != later.block
    ):
        return False
    number, *_ = ir.DenseI64ArrayAttr(launch.attributes[LAUNCH_ORDER])
    return number not in list(ir.DenseI64ArrayAttr(later.attributes[LAUNCH_ORDER]))[1:]


def erase_launch_order(function: Op) -> None:
    """Removes the attributes that ``record_launch_order`` added, in place."""
    for launch in walk(function, LAUNCH):
        if LAUNCH_ORDER in launch.attributes:
            del launch.attributes[LAUNCH_ORDER]
