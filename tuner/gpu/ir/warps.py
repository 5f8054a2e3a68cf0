"""Builders of what the lanes of a warp do together, and of inline PTX, at the current insertion point."""

from tuner.core.gpu import WARP_THREADS
from tuner.mlir.bindings import Attribute, Type, Value, ir
from tuner.mlir.ir.building import create, value

ALL_LANES = -1
ATT_DIALECT = 0  # LLVM's number of the assembler dialect; PTX has only one


def i32() -> Type:
    """Returns the MLIR type i32 in the current context."""
    return ir.IntegerType.get_signless(32)


def word(number: int) -> Value:
    """Creates an ``arith.constant`` of type i32; returns its value."""
    return value("arith.constant", i32(), value=ir.IntegerAttr.get(i32(), number))


def synchronise_warp() -> None:
    """Creates a barrier of the threads of a warp."""
    create("nvvm.bar.warp.sync", [], [word(ALL_LANES)])


def shuffled(mode: str, sent: Value, lane: Value) -> Value:
    """Creates a ``gpu.shuffle`` of all lanes of a warp; returns the value that each lane receives.

    ``mode``: "idx" or "xor"; ``lane``: an i32, the number of the lane to receive from, or for "xor" what the
    receiving lane's number is xor'd with to get it.
    """
    types = [sent.type, ir.IntegerType.get_signless(1)]
    attribute = ir.Attribute.parse(f"#gpu<shuffle_mode {mode}>")
    return create("gpu.shuffle", types, [sent, lane, word(WARP_THREADS)], mode=attribute).results[0]


def assembly(text: str, constraints: str) -> dict[str, Attribute]:
    """Returns the attributes of an ``llvm.inline_asm`` with side effects: LLVM does not move or drop it.

    ``constraints``: of operands, in LLVM's syntax.
    """
    return {**movable_assembly(text, constraints), "has_side_effects": ir.UnitAttr.get()}


def movable_assembly(text: str, constraints: str) -> dict[str, Attribute]:
    """Returns the attributes of an ``llvm.inline_asm`` that LLVM may move, and drop if nothing reads it."""
    return {
        "asm_string": ir.StringAttr.get(text),
        "constraints": ir.StringAttr.get(constraints),
        "asm_dialect": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ATT_DIALECT),
    }
