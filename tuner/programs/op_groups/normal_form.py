"""Brings the operations of a program into the few forms that groups are formed of.

Elementwise operations, transposes and broadcasts become ``linalg.generic``; matmuls, convolutions and pooling
stay named. Dimensions of size 1 are folded away. ``linalg-fuse-elementwise-ops`` is not run: with reshapes it
makes generics of matmuls, and computes a layer norm again for each column of the matmul that reads it.
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.interpreter import apply_script, parse
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.walking import walk_where
from tuner.programs.op_groups.op_names import FILL, GENERIC

OP = "!transform.any_op"
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
    names = sorted({op.name for op in walk_where(module, _is_generalized)})
    if not names:
        return
    listed = ", ".join(f'"{name}"' for name in names)
    script = f"""module attributes {{transform.with_named_sequence}} {{
      transform.named_sequence @__transform_main(%root: {OP}) {{
        %named = transform.structured.match ops{{[{listed}]}} in %root : ({OP}) -> {OP}
        %generic = transform.structured.generalize %named : ({OP}) -> {OP}
        transform.yield
      }}
    }}"""
    apply_script(module, parse(script, "generalize"))


def _is_generalized(op: Op) -> bool:
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
