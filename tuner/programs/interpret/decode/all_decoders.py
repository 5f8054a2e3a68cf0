"""The decoders of all supported operations, by operation name."""

from tuner.programs.interpret.decode import (
    allocations,
    async_copies,
    branches,
    collectives,
    contractions,
    conversions,
    floats,
    gpu_indices,
    integers,
    loops,
    math_functions,
    memory,
    printing,
    shuffles,
    subgroup_matrices,
    tensor_cores,
    vector_memory,
    vectors,
    views,
)
from tuner.programs.interpret.scope import Decoders

FAMILIES = (
    *(integers, floats, conversions, math_functions),
    *(branches, loops),
    *(memory, allocations, views),
    *(vectors, vector_memory, contractions),
    *(gpu_indices, collectives, shuffles, printing),
    *(subgroup_matrices, tensor_cores, async_copies),
)
NOTHING = frozenset(
    {
        *("memref.dealloc", "memref.prefetch"),
        *("nvgpu.device_async_create_group", "nvgpu.device_async_wait"),  # copies are executed immediately
    }
)
ENDS = frozenset(
    {
        *("gpu.return", "gpu.yield", "func.return", "scf.yield", "scf.condition", "scf.reduce"),
        *("memref.atomic_yield", "memref.alloca_scope.return"),
    }
)
DECODERS = Decoders(
    {name: decode for family in FAMILIES for name, decode in family.DECODERS.items()},
    branches.CHOICES,
    NOTHING,
    ENDS,
)
