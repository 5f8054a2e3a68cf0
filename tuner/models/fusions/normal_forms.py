"""Brings the operations of a program into the few forms that fusions are formed of, in place."""

from collections.abc import Sequence

from tuner.mlir.bindings import Op, ir
from tuner.mlir.fusions import operations
from tuner.mlir.ir.reading import op_of, walk_where
from tuner.mlir.passes import run_passes
from tuner.mlir.transform import apply_script, parse
from tuner.models.fusions.matmul_forms import is_plain_but_for_order

# Elementwise operations, transposes and broadcasts become ``linalg.generic``; matmuls, convolutions and
# pooling stay named. Dimensions of size 1 are folded away. ``linalg-fuse-elementwise-ops`` is not run on the
# whole program: with reshapes it makes generics of matmuls, and computes a layer norm again for each column
# of the matmul that reads it.

OP = "!transform.any_op"
MARK = "generalized"  # attribute of operations, while they are made generic
GENERALIZE = f"""module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%root: {OP}) {{
    %named = transform.structured.match attributes{{{MARK}}} in %root : ({OP}) -> {OP}
    %generic = transform.structured.generalize %named : ({OP}) -> {OP}
    transform.yield
  }}
}}"""
CLEAN = "canonicalize,cse"
PREPARE = f"builtin.module(func.func(convert-elementwise-to-linalg),{CLEAN})"
FOLD_UNIT_DIMENSIONS = f"builtin.module(func.func(linalg-fold-unit-extent-dims,{CLEAN}))"
INLINE_NUMBERS = "builtin.module(func.func(linalg-inline-scalar-operands))"
CLEAN_UP = f"builtin.module({CLEAN})"
# Parts of names of operations that stay, next to ``matmul`` and ``batch_matmul``: operations with schedules,
# then operations that must not or cannot be generic.
KEPT = ("quantized", "conv", "pooling", "winograd", "fill", "generic", "index", "yield", "softmax", "pack")


def prepare(module: ir.Module) -> None:
    """Converts elementwise operations on tensors to ``linalg.generic``, and removes duplicates, in place."""
    run_passes(module, PREPARE)


def generalize(module: ir.Module) -> None:
    """Converts named linalg operations, except contractions and windows, to ``linalg.generic``, in place.

    Also converts matmuls with a broadcast operand, with one column or with a batch of one, and fills by a
    number that is not a constant. Fills by a constant stay, since each fusion that reads one gets its own
    copy; so do softmax and packing.
    """
    if generalize_named(module):
        run_passes(module, INLINE_NUMBERS)


def generalize_named(module: ir.Module) -> bool:
    """Converts the same operations to ``linalg.generic`` as ``generalize``; returns whether there were any.

    Operands of rank 0 stay operands.
    """
    ops = walk_where(module, _is_generalized)
    generalize_ops(module, ops)
    return bool(ops)


def generalize_ops(module: ir.Module, ops: Sequence[Op]) -> None:
    """Converts ``ops``, named linalg operations of a module, to ``linalg.generic``, in place."""
    if not ops:
        return
    for op in ops:
        op.attributes[MARK] = ir.UnitAttr.get()
    apply_script(module, parse(GENERALIZE, "generalize"))
    for op in walk_where(module, lambda op: MARK in op.attributes):
        del op.attributes[MARK]


def _is_generalized(op: Op) -> bool:
    if op.name in operations.MATMULS:
        return not is_plain_but_for_order(op) or _is_of_one(op)  # an operand is broadcast
    if op.name == operations.FILL:
        return op_of(op.operands[0], operations.CONSTANT) is None
    if not op.name.startswith("linalg.") or op.name == operations.GENERIC:
        return False
    name = op.name.removeprefix("linalg.")
    return not any(kept in name for kept in KEPT)


def _is_of_one(op: Op) -> bool:
    """Returns whether a matmul is the only one of a batch, or has one column.

    ``contractions_as_matmuls`` then makes a matmul without a batch; a column is better summed row by row.
    """
    shape: list[int] = list(op.results[0].type.shape)
    return shape[-1] == 1 or shape[:-2] == [1]


def fold_unit_dimensions(module: ir.Module) -> None:
    """Drops loops and dimensions of size 1 of ``linalg.generic``, in place; reshapes connect what remains."""
    run_passes(module, FOLD_UNIT_DIMENSIONS)


def clean_up(module: ir.Module) -> None:
    """Removes pairs of reshapes that cancel, duplicate operations and unused operations, in place."""
    run_passes(module, CLEAN_UP)
