"""The data dependences of a host function: a graph of its device work and of the host's, for each block.

Takes a function whose device work (``DEVICE_OPS``) is still synchronous; gives a node for each operation
that touches buffers, with the earlier nodes that it depends on: those that touch the same part of a buffer,
where one of the two writes it (flow, anti and output dependences). ``stream_plan.py`` takes it from there.
Rejected: several blocks, device work inside of other ops than scf.for, scf.while, scf.if and
scf.index_switch, tokens.

    gpu.memcpy %d, %a : memref<4xf32>, memref<4xf32>                   // 0
    gpu.launch_func @m::@inc ... args(%d : memref<4xf32>)              // 1, depends on 0
    gpu.memcpy %a, %d : memref<4xf32>, memref<4xf32>                   // 2, depends on 0 and 1
    %v = memref.load %a[%c0] : memref<4xf32>                           // 3, the host's, depends on 2
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Block, Op
from tuner.mlir.effects.buffer_accesses import (
    NONE,
    Accesses,
    device_accesses,
    has_device_work,
    host_accesses,
    is_device_work,
    union,
)
from tuner.mlir.effects.kernel_effects import KernelEffects
from tuner.mlir.rewrite.located_error import unsupported
from tuner.programs.lower.streams.async_ops import is_token
from tuner.programs.lower.streams.carried_dependences import (
    Carried,
    NodeAccesses,
    carried_dependences,
    own_memory,
    without,
)
from tuner.programs.lower.streams.stream_plan import BEGIN, Node, NodeKind

LOOPS = frozenset({"scf.for", "scf.while"})
ONCE = frozenset({"scf.if", "scf.index_switch", "memref.alloca_scope"})  # regions that run at most once
KINDS = {"gpu.alloc": NodeKind.ALLOCATION, "gpu.dealloc": NodeKind.FREE}


@dataclass(frozen=True)
class Item:
    """A node and its operation, with a graph for each block in it if that is around device work."""

    op: Op
    node: Node
    bodies: tuple["DependencyGraph", ...] = ()


@dataclass(frozen=True)
class DependencyGraph:
    """The nodes of a block, in the order of its operations."""

    block: Block
    items: tuple[Item, ...]
    carried: Carried | None = None  # of a loop's body; None: an iteration begins behind all of the last

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Returns the nodes, which name one another by their index here."""
        return tuple(item.node for item in self.items)


def dependency_graph(function: Op, effects: KernelEffects, *, bodies_run_on_streams: bool) -> DependencyGraph:
    """Reads a function. Raises CandidateError(COMPILE) for device work in control flow that is not scf's.

    An op around device work is one node. If bodies run on streams, it is work of its stream: it begins
    behind all that it depends on, and the host waits inside of it for what the host's part depends on. Else
    it is the host's, and all its device work is done when it ends.
    """
    blocks = list(function.regions[0].blocks)
    if len(blocks) != 1:
        raise unsupported(
            function, f"{len(blocks)} blocks", "one: control flow by scf.for, scf.while and scf.if"
        )
    return _Builder(effects, bodies_run_on_streams=bodies_run_on_streams).graph(blocks[0], NONE)


class _Builder:
    """Builds the graphs of a block and of those nested in it."""

    def __init__(self, effects: KernelEffects, *, bodies_run_on_streams: bool) -> None:
        self._effects = effects
        self._on_streams = bodies_run_on_streams

    def graph(self, block: Block, carried: Accesses) -> DependencyGraph:
        """Reads a block; ``carried`` are accesses of the device that may go on when the block begins."""
        items = _Items(carried)
        for op in block.operations:
            self._add(items, op.operation)
        repeats = self._on_streams and block.owner.name == "scf.for"
        return DependencyGraph(block, tuple(items.items), items.carried(block) if repeats else None)

    def _add(self, items: "_Items", op: Op) -> None:
        if is_device_work(op):
            _refuse_tokens(op)
            kind = KINDS.get(op.name, NodeKind.WORK)
            items.add(op, kind, device_accesses(op, self._effects), is_kernel=op.name == "gpu.launch_func")
        elif has_device_work(op):
            self._add_region(items, op)
        elif accesses := host_accesses(op):
            items.add(op, NodeKind.HOST, accesses)

    def _add_region(self, items: "_Items", op: Op) -> None:
        if op.name not in LOOPS | ONCE:
            raise unsupported(op, "device work inside", ", ".join(sorted(LOOPS | ONCE)))
        on_device, on_host = device_accesses(op, self._effects), host_accesses(op)
        carried = NONE
        if self._on_streams:
            earlier_iterations = _of_earlier_iterations(op, on_device) if op.name in LOOPS else NONE
            carried = union((earlier_iterations, items.unfinished(union((on_device, on_host)))))
        bodies = tuple(self.graph(block, carried) for region in op.regions for block in region.blocks)
        if self._on_streams:
            items.add(op, NodeKind.WORK, on_device, on_host, bodies, is_kernel=True)
        else:
            items.add(op, NodeKind.HOST, union((on_device, on_host)), NONE, bodies)


class _Items:
    """The items of a block so far, what each touches, and what the host has waited for."""

    def __init__(self, carried: Accesses) -> None:
        self.items: list[Item] = []
        self._nodes: list[NodeAccesses] = []
        self._earlier: list[frozenset[int]] = []  # item -> its transitive dependences, BEGIN included
        self._done: frozenset[int] = frozenset()  # items that the host knows to be done
        self._carried = carried

    def add(
        self,
        op: Op,
        kind: NodeKind,
        accesses: Accesses,
        inside: Accesses = NONE,  # the host's, in work of the device: they depend on others, none on them
        bodies: tuple[DependencyGraph, ...] = (),
        *,
        is_kernel: bool = False,
    ) -> None:
        """Adds an item behind all that it depends on."""
        before = self._dependences(union((accesses, inside)))
        if kind is NodeKind.HOST and accesses.conflicts_with(self._carried):
            before |= {BEGIN}
        self.items.append(Item(op, Node(kind, before, is_kernel), bodies))
        self._nodes.append(NodeAccesses(kind, accesses, inside))
        earlier = before.union(*(self._earlier[number] for number in before - {BEGIN}))
        self._earlier.append(earlier)
        if kind is NodeKind.HOST:
            self._done |= earlier

    def carried(self, block: Block) -> Carried | None:
        """Returns the dependences between iterations, if the items are those of a loop's body."""
        own = own_memory(block)
        return carried_dependences([node.without(own) for node in self._nodes])

    def unfinished(self, accesses: Accesses) -> Accesses:
        """Returns the device's accesses that these depend on and that the host has not waited for."""
        unfinished = (number for number in self._dependences(accesses) - self._done)
        works = (
            self._nodes[number].own
            for number in unfinished
            if self.items[number].node.kind is not NodeKind.HOST
        )
        return union((NONE if BEGIN in self._done else self._carried, *works))

    def _dependences(self, accesses: Accesses) -> frozenset[int]:
        """Returns the items in conflict with the accesses; frees are in order by those they depend on."""
        return frozenset(
            number
            for number, earlier in enumerate(self._nodes)
            if earlier.kind is not NodeKind.FREE and earlier.own.conflicts_with(accesses)
        )


def _of_earlier_iterations(loop: Op, on_device: Accesses) -> Accesses:
    """Returns what the device may go on with when an iteration begins."""
    blocks = [block for region in loop.regions for block in region.blocks]
    return without(on_device, {root for block in blocks for root in own_memory(block)})


def _refuse_tokens(op: Op) -> None:
    if any(is_token(value) for value in [*op.operands, *op.results]):
        raise unsupported(op, "async tokens", "synchronous device work: tokens are made here")
