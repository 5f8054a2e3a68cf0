"""The buffers of a function, in families: control flow may put one in the place of another of its family."""

from collections.abc import Iterator
from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.passes.buffer_roots import is_buffer, roots_of

# Control flow that is walked; all other operations with regions count as one operation.
STRUCTURED = frozenset({"scf.for", "scf.while", "scf.if", "scf.index_switch"})


class Families:
    """The families of all memrefs outside of operations that are taken as one."""

    def __init__(self, function: Any) -> None:
        """Raises CandidateError(COMPILE) for a memref of unknown origin."""
        self._roots: dict[Any, tuple[Any, ...]] = {}
        self._leader: dict[Any, Any] = {}
        for value in buffers_of(function):
            self._roots[value] = roots_of(value)
            self._join(self._roots[value])
        leaders = dict.fromkeys(self._find(root) for root in self._leader)
        self._number = {leader: number for number, leader in enumerate(leaders)}

    def of(self, value: Any) -> int:
        """Returns the number of a memref's family."""
        return self._number[self._find(self._roots[value][0])]

    def knows(self, value: Any) -> bool:
        """Tells whether a memref was there when this was made."""
        return value in self._roots

    def roots_of(self, value: Any) -> tuple[Any, ...]:
        """Returns the buffers that a memref may be part of."""
        return self._roots[value]

    def roots(self) -> list[Any]:
        """Returns all buffers, in the order of the function."""
        return list(self._leader)

    def is_alone(self, value: Any) -> bool:
        """Tells whether the memref's family has one member."""
        leader = self._find(self._roots[value][0])
        return [self._find(root) == leader for root in self._leader].count(True) == 1

    def _join(self, roots: tuple[Any, ...]) -> None:
        for root in roots:
            self._leader.setdefault(root, root)
            self._leader[self._find(root)] = self._find(roots[0])

    def _find(self, root: Any) -> Any:
        while self._leader[root] != root:
            root = self._leader[root]
        return root


def structured_operations(block: Any) -> Iterator[Any]:
    """Yields the operations of a block, and of the control flow in it, each before what it contains."""
    for op in list(block.operations):
        yield op.operation
        if op.operation.name in STRUCTURED:
            for region in op.operation.regions:
                for inner in region.blocks:
                    yield from structured_operations(inner)


def buffers_of(function: Any) -> Iterator[Any]:
    """Yields the memrefs that a function takes, makes and hands on, each after those it comes from."""
    block = function.regions[0].blocks[0]
    yield from (argument for argument in block.arguments if is_buffer(argument.type))
    for op in structured_operations(block):
        if op.name in STRUCTURED:
            for region in op.regions:
                yield from _buffers(argument for inner in region.blocks for argument in inner.arguments)
        yield from _buffers(op.results)


def _buffers(values: Any) -> Iterator[Any]:
    return (value for value in values if is_buffer(value.type))


def block_of(root: Any) -> Any:
    """Returns the block at whose end a buffer goes out of scope."""
    return root.owner if isinstance(root.owner, ir.Block) else root.owner.operation.block
