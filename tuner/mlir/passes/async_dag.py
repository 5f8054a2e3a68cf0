"""What a host function must keep in order: its device work, and the host's own, as a graph for each block.

Read from a function whose device work (``DEVICE_OPS``) is still synchronous. Two things are in conflict when
both touch the same part of a buffer and one writes it; the earlier one then comes before the later one.
``tuner.mlir.passes.stream_plan`` decides what follows from that.
"""

from dataclasses import dataclass
from typing import Any

from tuner.mlir.passes.async_ops import is_token
from tuner.mlir.passes.buffer_accesses import (
    NONE,
    Accesses,
    device_accesses,
    has_device_work,
    host_accesses,
    is_device_work,
    union,
)
from tuner.mlir.passes.kernel_effects import KernelEffects
from tuner.mlir.passes.stream_plan import BEGIN, Kind, Node
from tuner.mlir.unfit import unfit

LOOPS = frozenset({"scf.for", "scf.while"})
ONCE = frozenset({"scf.if", "scf.index_switch", "memref.alloca_scope"})  # regions that run at most once
KINDS = {"gpu.alloc": Kind.ALLOCATION, "gpu.dealloc": Kind.FREE}


@dataclass(frozen=True)
class Item:
    """A node with its operation; one around device work has a graph for each block inside."""

    op: Any
    node: Node
    bodies: tuple["Dag", ...] = ()


@dataclass(frozen=True)
class Dag:
    """The items of a block, in order."""

    block: Any
    items: tuple[Item, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Returns the nodes, by whose numbers they name one another."""
        return tuple(item.node for item in self.items)


def async_dag(function: Any, effects: KernelEffects, *, bodies_run_on_streams: bool) -> Dag:
    """Reads a function. Raises CandidateError(COMPILE) for device work in control flow that is not scf's.

    An op around device work is one node. Where bodies run on streams, it is work of its stream: it begins
    behind all that it is in conflict with, and the host waits for that inside of it, where it has to. Else it
    is the host's, and all its work is done when it is.
    """
    blocks = list(function.regions[0].blocks)
    if len(blocks) != 1:
        raise unfit(function, f"{len(blocks)} blocks", "one: control flow by scf.for, scf.while and scf.if")
    return _Builder(effects, bodies_run_on_streams=bodies_run_on_streams).dag(blocks[0], NONE)


class _Builder:
    """Makes the graphs of nested blocks."""

    def __init__(self, effects: KernelEffects, *, bodies_run_on_streams: bool) -> None:
        self._effects = effects
        self._on_streams = bodies_run_on_streams

    def dag(self, block: Any, carried: Accesses) -> Dag:
        """Reads a block. ``carried`` is what the device may still be doing when the block begins."""
        found = _Found(carried)
        for op in block.operations:
            self._add(found, op.operation)
        return Dag(block, tuple(found.items))

    def _add(self, found: "_Found", op: Any) -> None:
        if is_device_work(op):
            _refuse_tokens(op)
            kind = KINDS.get(op.name, Kind.WORK)
            found.add(op, kind, device_accesses(op, self._effects), is_kernel=op.name == "gpu.launch_func")
        elif has_device_work(op):
            self._add_region(found, op)
        elif accesses := host_accesses(op):
            found.add(op, Kind.HOST, accesses)

    def _add_region(self, found: "_Found", op: Any) -> None:
        if op.name not in LOOPS | ONCE:
            raise unfit(op, "device work inside", ", ".join(sorted(LOOPS | ONCE)))
        on_device, on_host = device_accesses(op, self._effects), host_accesses(op)
        carried = NONE
        if self._on_streams:
            rounds = on_device if op.name in LOOPS else NONE
            carried = union((rounds, found.unfinished(union((on_device, on_host)))))
        bodies = tuple(self.dag(block, carried) for region in op.regions for block in region.blocks)
        if self._on_streams:
            found.add(op, Kind.WORK, on_device, on_host, bodies, is_kernel=True)
        else:
            found.add(op, Kind.HOST, union((on_device, on_host)), NONE, bodies)


class _Found:
    """The items so far, what each touches, and what the host has waited for."""

    def __init__(self, carried: Accesses) -> None:
        self.items: list[Item] = []
        self._accesses: list[Accesses] = []
        self._earlier: list[frozenset[int]] = []  # of each item: all that comes before it, BEGIN included
        self._done: frozenset[int] = frozenset()
        self._carried = carried

    def add(
        self,
        op: Any,
        kind: Kind,
        accesses: Accesses,
        inside: Accesses = NONE,  # of the host, in work of the device: they wait, nothing waits for them
        bodies: tuple[Dag, ...] = (),
        *,
        is_kernel: bool = False,
    ) -> None:
        """Adds an item behind everything that it is in conflict with."""
        before = self._in_conflict(union((accesses, inside)))
        if kind is Kind.HOST and accesses.conflicts_with(self._carried):
            before |= {BEGIN}
        self.items.append(Item(op, Node(kind, before, is_kernel), bodies))
        self._accesses.append(accesses)
        earlier = before.union(*(self._earlier[number] for number in before - {BEGIN}))
        self._earlier.append(earlier)
        if kind is Kind.HOST:
            self._done |= earlier

    def unfinished(self, accesses: Accesses) -> Accesses:
        """Returns those of the device's accesses in conflict with these that the host has not waited for."""
        open_ = (number for number in self._in_conflict(accesses) - self._done)
        works = (self._accesses[number] for number in open_ if self.items[number].node.kind is not Kind.HOST)
        return union((NONE if BEGIN in self._done else self._carried, *works))

    def _in_conflict(self, accesses: Accesses) -> frozenset[int]:
        return frozenset(
            number
            for number, (item, earlier) in enumerate(zip(self.items, self._accesses, strict=True))
            if item.node.kind is not Kind.FREE and earlier.conflicts_with(accesses)
        )


def _refuse_tokens(op: Any) -> None:
    if any(is_token(value) for value in [*op.operands, *op.results]):
        raise unfit(op, "async tokens", "synchronous device work: tokens are made here")
