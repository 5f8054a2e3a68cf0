"""Alias sets of a function: buffers that control flow may exchange for one another are in one set.

Unification, as in Steensgaard, "Points-to Analysis in Almost Linear Time" (POPL 1996): flow-insensitive, and
all buffers that one memref may be a view of are unified by union-find. After a loop that swaps %a and %b::

    %r:2 = scf.for ... iter_args(%x = %a, %y = %b) -> (...) { scf.yield %y, %x : ... }

%a, %b, %x, %y, %r#0 and %r#1 are in one alias set.
"""

from collections.abc import Iterable, Iterator

from tuner.mlir.bindings import Block, Op, Value, ir
from tuner.mlir.effects.address_flow import is_buffer
from tuner.mlir.effects.buffer_roots import roots_of

# Control flow whose regions are walked; any other op with regions counts as a single op.
STRUCTURED = frozenset({"scf.for", "scf.while", "scf.if", "scf.index_switch"})


class AliasSets:
    """The alias sets of a function: buffers that control flow may exchange for one another are in one set.

    A buffer is an argument of the function, an allocation or a global; two arguments are two buffers. Each
    memref of the function, a view too, belongs to the set of the buffers that the memref may be a view of.
    Left out are memrefs inside of ops with regions that are not ``STRUCTURED`` (scf.for, scf.while, scf.if,
    scf.index_switch).
    """

    def __init__(self, function: Op) -> None:
        """Unifies the roots of every memref. Raises CandidateError(COMPILE) if an origin is unknown."""
        self._roots: dict[Value, tuple[Value, ...]] = {}
        self._leader: dict[Value, Value] = {}
        for value in buffers_of(function):
            self._roots[value] = roots_of(value)
            self._join(self._roots[value])
        leaders = dict.fromkeys(self._find(root) for root in self._leader)
        self._number = {leader: number for number, leader in enumerate(leaders)}

    def of(self, value: Value) -> int:
        """Returns the number of the alias set of memref ``value``; sets are numbered from 0.

        Raises KeyError for a memref that is not known (``knows``).
        """
        return self._number[self._find(self._roots[value][0])]

    def knows(self, value: Value) -> bool:
        """Returns whether ``value`` is one of the function's memrefs that were found at construction."""
        return value in self._roots

    def roots_of(self, value: Value) -> tuple[Value, ...]:
        """Returns the buffers (arguments, allocations, globals) that memref ``value`` may be a view of.

        Raises KeyError for a memref that is not known (``knows``).
        """
        return self._roots[value]

    def roots(self) -> list[Value]:
        """Returns all buffers of the function (arguments, allocations, globals), each once.

        They are in the order of the first memref in the program that may be a view of each: an allocation
        that a loop yields comes with the loop's arguments, before the allocations in its body.
        """
        return list(self._leader)

    def is_singleton(self, value: Value) -> bool:
        """Returns whether the alias set of memref ``value`` has one buffer only: ``value`` is a view of it.

        Raises KeyError for a memref that is not known (``knows``).
        """
        leader = self._find(self._roots[value][0])
        return [self._find(root) == leader for root in self._leader].count(True) == 1

    def _join(self, roots: tuple[Value, ...]) -> None:
        """Unites the sets of all ``roots``."""
        for root in roots:
            self._leader.setdefault(root, root)
            self._leader[self._find(root)] = self._find(roots[0])

    def _find(self, root: Value) -> Value:
        """Returns the representative of a root's set."""
        while self._leader[root] != root:
            root = self._leader[root]
        return root


def structured_operations(block: Block) -> Iterator[Op]:
    """Yields the ops of a block in pre-order, with those nested in ``STRUCTURED`` control flow.

    ``STRUCTURED``: scf.for, scf.while, scf.if, scf.index_switch. Any other op with regions is yielded without
    the ops nested in it.
    """
    for op in list(block.operations):
        yield op.operation
        if op.operation.name in STRUCTURED:
            for region in op.operation.regions:
                for inner in region.blocks:
                    yield from structured_operations(inner)


def buffers_of(function: Op) -> Iterator[Value]:
    """Yields all memref values of a function, views too: its arguments, op results and block arguments.

    A value comes before its uses. Memrefs inside of ops with regions that are not ``STRUCTURED`` are left
    out.
    """
    block = function.regions[0].blocks[0]
    yield from (argument for argument in block.arguments if is_buffer(argument.type))
    for op in structured_operations(block):
        if op.name in STRUCTURED:
            for region in op.regions:
                yield from _buffers(argument for inner in region.blocks for argument in inner.arguments)
        yield from _buffers(op.results)


def _buffers(values: Iterable[Value]) -> Iterator[Value]:
    return (value for value in values if is_buffer(value.type))


def block_of(root: Value) -> Block:
    """Returns the block in which the buffer ``root`` is defined, by an op or as an argument of the block."""
    return root.owner if isinstance(root.owner, ir.Block) else root.owner.operation.block
