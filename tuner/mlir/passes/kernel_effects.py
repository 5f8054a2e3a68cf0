"""Which buffers a kernel reads and writes: seen in its outlined body, through views.

What an operation does that is not listed here is taken to be both.
"""

from typing import Any, NamedTuple

from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk
from tuner.mlir.passes.buffer_roots import VIEWS
from tuner.mlir.passes.launch_operands import ARGUMENTS, operands
from tuner.mlir.symbols import function_type, name_of

READERS = frozenset(
    {
        *("memref.load", "affine.load", "affine.vector_load"),
        *("vector.load", "vector.maskedload", "vector.expandload", "vector.gather", "vector.transfer_read"),
        *("nvgpu.ldmatrix", "gpu.subgroup_mma_load_matrix"),
    }
)
# Operation -> number of the operand whose memory it writes; it reads that of the others.
WRITERS = {
    **dict.fromkeys(("memref.store", "affine.store", "affine.vector_store", "memref.copy"), 1),
    **dict.fromkeys(("vector.store", "vector.transfer_write", "gpu.subgroup_mma_store_matrix"), 1),
    **dict.fromkeys(("vector.maskedstore", "vector.compressstore", "vector.scatter"), 0),
    **dict.fromkeys(("nvgpu.device_async_copy", "nvgpu.tma.async.load"), 0),
    "nvgpu.tma.async.store": 1,
}
# Look at sizes only, or change nothing that can be seen.
BYSTANDERS = frozenset({"memref.dim", "memref.rank", "memref.prefetch", "nvgpu.tma.prefetch.descriptor"})
# Take the address of a memref, and may go on from there to what is not part of it.
LEAVERS = frozenset(
    {
        *("memref.reinterpret_cast", "memref.extract_strided_metadata"),
        *("gpu.subgroup_mma_load_matrix", "gpu.subgroup_mma_store_matrix"),  # by strides of their own
    }
)
# Their first operand is a value, not memory: a memref there is kept for later.
STORES = frozenset({"memref.store", "affine.store"})


class Effect(NamedTuple):
    """What may happen to the contents of a buffer."""

    reads: bool
    writes: bool
    is_bounded: bool = True  # not to what is outside of the memref in question, if that is a view


class Access(NamedTuple):
    """A buffer, as an operation names it, and what the operation may do to it."""

    value: Any
    effect: Effect


NOTHING, ANYTHING = Effect(False, False), Effect(True, True, is_bounded=False)
READS, WRITES = Effect(reads=True, writes=False), Effect(reads=False, writes=True)


class KernelEffects:
    """The effects of all kernels of a module, as it is when this is made."""

    def __init__(self, module: ir.Module) -> None:
        """Reads the bodies of all ``gpu.func``."""
        self._effects = {
            f"@{name_of(holder)}::@{name_of(function)}": _effects_of_arguments(function)
            for holder in walk(module, "gpu.module")
            for function in walk(holder, "gpu.func")
        }

    def of_launch(self, launch: Any) -> tuple[Access, ...]:
        """Returns what a ``gpu.launch_func`` does to its operands, numbers left out, in their order.

        A kernel without a body here may do anything.
        """
        values = operands(launch, ARGUMENTS)
        effects = self._effects.get(str(launch.attributes["kernel"]), (ANYTHING,) * len(values))
        pairs = zip(values, effects, strict=True)
        return tuple(Access(value, effect) for value, effect in pairs if not is_number(value.type))


def effect_of(buffer: Any) -> Effect:
    """Returns what all users of a memref, or of a descriptor of one, may do to it."""
    effects = [effect_of_use(use.owner.operation, use.operand_number) for use in buffer.uses]
    return Effect(
        any(effect.reads for effect in effects),
        any(effect.writes for effect in effects),
        all(effect.is_bounded for effect in effects),
    )


def is_number(kind: Any) -> bool:
    """Tells whether a type is a scalar or a vector, which an operation takes by value."""
    return isinstance(kind, ir.IntegerType | ir.IndexType | ir.FloatType | ir.VectorType | ir.ComplexType)


def _effects_of_arguments(function: Any) -> tuple[Effect, ...]:
    inputs = function_type(function).inputs
    arguments = list(function.regions[0].blocks[0].arguments)[: len(inputs)]  # attributions follow them
    return tuple(NOTHING if is_number(argument.type) else effect_of(argument) for argument in arguments)


def effect_of_use(op: Any, number: int) -> Effect:
    """Returns what an operation may do to the memref that is its operand of that number."""
    effect = _effect_of_use(op, number)
    return effect._replace(is_bounded=effect.is_bounded and op.name not in LEAVERS)


def _effect_of_use(op: Any, number: int) -> Effect:
    if op.name in VIEWS:
        return effect_of(op.results[0])
    if op.name in BYSTANDERS:
        return NOTHING
    if op.name in READERS:
        return READS
    if (op.name in STORES and number == 0) or op.name not in WRITERS:
        return ANYTHING
    return WRITES if number == WRITERS[op.name] else READS
