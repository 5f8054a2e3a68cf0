"""The memory effects of single ops, in tables in place of MLIR's ``MemoryEffectOpInterface``.

Functions of MLIR's runner libraries are listed too, because host programs call them.
"""

from typing import NamedTuple

from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.reading import callee_of

# Names and argument types of the functions of MLIR's runner libraries that a program may declare and call.
#
# The functions are those of ``mlir_c_runner_utils`` and ``mlir_runner_utils``, see
# <https://github.com/llvm/llvm-project/blob/main/mlir/lib/ExecutionEngine/RunnerUtils.cpp>. A function with
# ``llvm.emit_c_interface`` is called as ``_mlir_ciface_NAME``, with the address of a memref's descriptor.

C_INTERFACE = "_mlir_ciface_"
# Name -> LLVM types of the arguments.
PRINTED_SCALARS: dict[str, tuple[str, ...]] = {
    "printI64": ("i64",),
    "printU64": ("i64",),
    "printF16": ("i16",),  # the bits of the f16
    "printBF16": ("i16",),
    "printF32": ("f32",),
    "printF64": ("f64",),
    "printString": ("ptr",),
    "printOpen": (),
    "printClose": (),
    "printComma": (),
    "printNewline": (),
    "printFlops": ("f64",),
}
# Name -> result type; no arguments.
CLOCKS = {"rtclock": "f64", "nanoTime": "i64"}  # seconds, nanoseconds
# Suffix of a function's name -> element type of the memref that it prints.
PRINTED_ELEMENTS = {
    "I8": "i8",
    "I16": "i16",
    "I32": "i32",
    "I64": "i64",
    "F16": "f16",
    "BF16": "bf16",
    "F32": "f32",
    "F64": "f64",
    "Ind": "index",
}
MEMREFS = {f"printMemref{ending}": element for ending, element in PRINTED_ELEMENTS.items()}
SHAPES = {f"printMemrefShape{ending}": element for ending, element in PRINTED_ELEMENTS.items()}
RUNNER_FUNCTIONS = frozenset({*PRINTED_SCALARS, *CLOCKS, *MEMREFS, *SHAPES})


def is_runner_function(symbol: str) -> bool:
    """Returns whether a symbol names a function of MLIR's runner libraries, also with ``_mlir_ciface_``."""
    return symbol.removeprefix(C_INTERFACE) in RUNNER_FUNCTIONS


# The Python bindings do not expose ``MemoryEffectOpInterface``, so the ops are listed here, for the device
# and the host. An op that is not listed may read and write.

READERS = frozenset(
    {
        *("memref.load", "affine.load", "affine.vector_load"),
        *("vector.load", "vector.maskedload", "vector.expandload", "vector.gather", "vector.transfer_read"),
        *("nvgpu.ldmatrix", "gpu.subgroup_mma_load_matrix"),
        "nvvm.cp.async.bulk.tensor.shared.cluster.global",  # reads through a tensor map
    }
)
# Op -> number of the operand whose memory it writes; it reads the memory of its other operands.
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
# Attribute of func.call: numbers of the operands whose memory it writes; it reads that of every operand.
WRITES_ATTRIBUTE = "writes"


class Effect(NamedTuple):
    """What an op may do to a memref: read elements, write elements, access memory outside of the memref."""

    reads: bool
    writes: bool
    is_bounded: bool = True  # False: if the memref is a view, elements outside of it may be accessed too


NOTHING, ANYTHING = Effect(False, False), Effect(True, True, is_bounded=False)
READS, WRITES = Effect(reads=True, writes=False), Effect(reads=False, writes=True)


def effect_on_operand(op: Op, number: int) -> Effect:
    """Returns what ``op`` may do to the memref that is its operand ``number``, without uses of views of it.

    An op of which nothing is known may read and write; known are the tables of this module, linalg ops, and
    calls of MLIR's runner or with the attribute ``writes``.
    """
    effect = _effect_on_operand(op, number)
    return effect._replace(is_bounded=effect.is_bounded and op.name not in UNBOUNDED)


def _effect_on_operand(op: Op, number: int) -> Effect:
    if op.name in NO_MEMORY_EFFECT:
        return NOTHING
    if (
        op.name in READERS
        or READ_ONLY_ATTRIBUTE in op.attributes
        or (op.name == "func.call" and is_runner_function(callee_of(op)))
    ):
        return READS
    if op.name in WRITERS and not (op.name in STORES and number == 0):
        return WRITES if number == WRITERS[op.name] else READS
    if op.name == "func.call" and WRITES_ATTRIBUTE in op.attributes:
        return Effect(True, writes=number in list(ir.DenseI64ArrayAttr(op.attributes[WRITES_ATTRIBUTE])))
    if op.name == "linalg.fill":
        return WRITES
    if op.name.startswith("linalg.") and "operandSegmentSizes" in op.attributes:
        inputs = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0]
        return READS if number < inputs else ANYTHING
    return ANYTHING
