"""A group of operations as a function of tensors, with the memrefs that its tensors are read from."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuner.core.grouped_program import OpGroup
from tuner.mlir.bindings import Block, Op, Value, ir
from tuner.mlir.interpreter import parse
from tuner.mlir.pipeline import run_passes
from tuner.programs.lower.indirect_indices import assert_indirect_indices
from tuner.programs.op_groups.op_names import GENERIC

READ, WRITE = "bufferization.to_tensor", "bufferization.materialize_in_destination"
GENERALIZE = "builtin.module(func.func(linalg-generalize-named-ops))"


@dataclass(frozen=True)
class GroupFunction:
    """A group's function in the current MLIR context, and the memrefs that stand for its arguments."""

    module: ir.Module  # owns the function
    memory: dict[Value, Value]  # tensor that the function reads -> memref with its elements
    outputs: tuple[tuple[Value, Value], ...]  # (tensor, memref that it is written to)

    @property
    def block(self) -> Block:
        """Returns the block of the function."""
        return _block_of(self.module)

    @property
    def ops(self) -> list[Op]:
        """Returns the function's operations, in order, without the return."""
        return [op.operation for op in self.block.operations][:-1]

    @property
    def generics(self) -> list[Op]:
        """Returns the function's ``linalg.generic`` operations, in order."""
        return [op for op in self.ops if op.name == GENERIC]


def group_function(group: OpGroup, memrefs: Sequence[Value], *, is_generalized: bool) -> GroupFunction:
    """Parses a group's text in the current MLIR context; indices that are data are asserted.

    Args:
        group: the group.
        memrefs: values for its inputs, then for its outputs, of another module in the same context.
        is_generalized: whether matmuls and convolutions become ``linalg.generic``.
    """
    module = parse(group.text, "group")
    assert_indirect_indices(module.body.operations[0].operation)
    if is_generalized:
        run_passes(module, GENERALIZE)
    block = _block_of(module)
    given = dict(zip(block.arguments, memrefs, strict=True))
    memory: dict[Value, Value] = {}
    outputs: list[tuple[Value, Value]] = []
    for op in (each.operation for each in block.operations):
        if op.name == READ:
            memory[op.results[0]] = given[op.operands[0]]
        elif op.name == WRITE:
            outputs.append((op.operands[0], given[op.operands[1]]))
    return GroupFunction(module, memory, tuple(outputs))


def _block_of(module: ir.Module) -> Block:
    return module.body.operations[0].operation.regions[0].blocks[0]
