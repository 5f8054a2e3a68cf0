"""All micro-kernels of a visit."""

from benchmarks.gpu_visit.micro_kernels import (
    FORMS,
    MicroKernel,
    asynchronous_copies,
    register_ports,
    shared_reads,
    tensor_copies,
)
from benchmarks.gpu_visit.wgmma_kernels import SUM_TYPES, bits_of_a_sum, tf32_products


def micro_kernels() -> tuple[MicroKernel, ...]:
    """Returns the micro-kernels in the order in which they run: ports and path first, which decide most."""
    return (
        *map(register_ports, FORMS),
        *map(shared_reads, (4, 2)),
        *map(bits_of_a_sum, SUM_TYPES),
        *(tf32_products(count, from_registers=flag) for flag in (False, True) for count in (1, 2)),
        *map(asynchronous_copies, (16, 4)),
        tensor_copies(),
    )
