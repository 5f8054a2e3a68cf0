"""Brings the operations of a program into the few forms that groups are formed of.

Elementwise operations, transposes and broadcasts become ``linalg.generic``; matmuls, convolutions and pooling
stay named. Dimensions of size 1 are folded away. ``linalg-fuse-elementwise-ops`` is not run: with reshapes it
makes generics of matmuls, and computes a layer norm again for each column of the matmul that reads it.
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.interpreter import apply_script, parse
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.walking import walk_where
from tuner.programs.op_groups.op_names import FILL, GENERIC, MATMULS
from tuner.programs.op_groups.transposed_matmuls import is_plain, is_transposed

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
CLEAN_UP = f"builtin.module({CLEAN})"
# Named operations that stay: contractions, convolutions, pooling, and what has no loops of its own.
KEPT = (
    "matmul",
    "conv",
    "pooling",
    "fill",
    "generic",
    "index",
    "yield",
    "softmax",
    "pack",
    "winograd",
    "mmt4d",
)


def prepare(module: ir.Module) -> None:
    """Makes linalg operations of elementwise operations on tensors, and removes duplicates, in place."""
    run_passes(module, PREPARE)


def generalize(module: ir.Module) -> None:
    """Makes ``linalg.generic`` of named operations other than contractions and windows, in place."""
    ops = walk_where(module, _is_generalized)
    if not ops:
        return
    for op in ops:
        op.attributes[MARK] = ir.UnitAttr.get()
    apply_script(module, parse(GENERALIZE, "generalize"))
    for op in walk_where(module, lambda op: MARK in op.attributes):
        del op.attributes[MARK]


def _is_generalized(op: Op) -> bool:
    if op.name in MATMULS:
        return not is_plain(op) and not is_transposed(op)  # of broadcast operands
    if not op.name.startswith("linalg.") or op.name in (GENERIC, FILL):
        return False
    name = op.name.removeprefix("linalg.")
    return not any(kept in name for kept in KEPT)


def fold_unit_dimensions(module: ir.Module) -> None:
    """Drops loops and dimensions of size 1 of ``linalg.generic``, in place; reshapes connect what remains."""
    run_passes(module, FOLD_UNIT_DIMENSIONS)


def clean_up(module: ir.Module) -> None:
    """Removes reshapes that undo each other, duplicates and what nobody uses, in place."""
    run_passes(module, CLEAN_UP)
