"""The memory effects of single ops, in tables: MLIR's Python bindings do not show an op's own effects.

The tables are for the device and the host. An op that is not listed may read and write.
"""

from typing import NamedTuple

from tuner.mlir.bindings import Op, ir
from tuner.mlir.effects.runner_signatures import is_runner_function
from tuner.mlir.ir.reading import callee_of

READERS = frozenset(
    {
        *("memref.load", "affine.load", "affine.vector_load"),
        *("vector.load", "vector.maskedload", "vector.expandload", "vector.gather", "vector.transfer_read"),
        *("nvgpu.ldmatrix", "gpu.subgroup_mma_load_matrix"),
        "nvvm.cp.async.bulk.tensor.shared.cluster.global",  # reads through a tensor map
    }
)
# Op -> index of the operand whose memory it writes; it reads the memory of its other operands.
WRITERS = {
    **dict.fromkeys(("memref.store", "affine.store", "affine.vector_store", "memref.copy"), 1),
    **dict.fromkeys(("vector.store", "vector.transfer_write", "gpu.subgroup_mma_store_matrix"), 1),
    **dict.fromkeys(("vector.maskedstore", "vector.compressstore", "vector.scatter"), 0),
    **dict.fromkeys(("nvgpu.device_async_copy", "nvgpu.tma.async.load"), 0),
    "nvgpu.tma.async.store": 1,
}
# Ops that take a memref and access no memory: MLIR's NoMemoryEffect, and prefetch hints.
NO_MEMORY_EFFECT = frozenset(
    {"memref.dim", "memref.rank", "memref.prefetch", "nvgpu.tma.prefetch.descriptor"}
)
# Ops that take the address of a memref, and may access memory outside of it.
UNBOUNDED = frozenset(
    {
        *("memref.reinterpret_cast", "memref.extract_strided_metadata"),
        *("gpu.subgroup_mma_load_matrix", "gpu.subgroup_mma_store_matrix"),  # have a stride attribute
    }
)
# Ops that store their first operand: a memref there escapes.
STORES = frozenset({"memref.store", "affine.store"})
# Attribute of memref.extract_aligned_pointer_as_index: nothing is written through the address.
READ_ONLY_ATTRIBUTE = "tuner.read_only"
# Attribute of func.call: indices of the operands whose memory it writes; it reads that of every operand.
WRITES_ATTRIBUTE = "writes"


class Effect(NamedTuple):
    """What an op may do to a memref: read elements, write elements, access memory outside of the memref."""

    reads: bool
    writes: bool
    is_bounded: bool = True  # False: if the memref is a view, elements outside of it may be accessed too


NOTHING = Effect(False, False)
ANYTHING = Effect(True, True, is_bounded=False)
READS = Effect(reads=True, writes=False)
WRITES = Effect(reads=False, writes=True)


def effect_on_operand(op: Op, index: int) -> Effect:
    """Returns what ``op`` itself may do to its memref operand ``index``.

    What users of a view do that the op makes is left out. An op may read and write anything, unless it is in
    this module's tables, a linalg op, or a call of a function of MLIR's runner or with the attribute
    ``writes``.
    """
    effect = _effect_on_operand(op, index)
    return effect._replace(is_bounded=effect.is_bounded and op.name not in UNBOUNDED)


def _effect_on_operand(op: Op, index: int) -> Effect:
    if op.name in NO_MEMORY_EFFECT:
        return NOTHING
    if (
        op.name in READERS
        or READ_ONLY_ATTRIBUTE in op.attributes
        or (op.name == "func.call" and is_runner_function(callee_of(op)))
    ):
        return READS
    # operand 0 of a store is the stored value: a memref that is stored may be accessed by anybody later
    if op.name in WRITERS and not (op.name in STORES and index == 0):
        if index == WRITERS[op.name]:
            return WRITES
        return READS
    if op.name == "func.call" and WRITES_ATTRIBUTE in op.attributes:
        return Effect(True, writes=index in list(ir.DenseI64ArrayAttr(op.attributes[WRITES_ATTRIBUTE])))
    if op.name == "linalg.fill":
        return WRITES
    if op.name.startswith("linalg.") and "operandSegmentSizes" in op.attributes:
        inputs = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0]
        if index < inputs:
            return READS
        return ANYTHING
    return ANYTHING
