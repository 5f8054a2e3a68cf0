"""Checks that a run fits the machine before anything is allocated or started."""

from tuner.core.errors import UsageError
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.processors import Processors
from tuner.payload.reference import reference_bytes

GIB = 2**30
WORKER_BYTES = 192 * 2**20  # of a compile worker: the bindings and one module, as measured


def require_memory(problem: Problem, machine: Machine) -> None:
    """Raises UsageError if a problem's arrays and float64 reference do not fit into the machine's memory.

    A machine of unknown memory (0 bytes) passes.
    """
    needed = reference_bytes(problem)
    if needed <= machine.memory_bytes or machine.memory_bytes == 0:  # 0: unknown, of a recorded machine
        return
    raise UsageError(
        f"shape {problem.shape} {problem.dtype}: its arrays and their float64 reference need "
        f"{needed / GIB:.1f} GiB, available {machine.memory_bytes / GIB:.1f} GiB"
    )


def require_workers(workers: int, machine: Machine) -> None:
    """Raises UsageError for more compile workers than fit into the machine's memory, WORKER_BYTES each.

    WORKER_BYTES is 192 MiB. A machine of unknown memory (0 bytes) passes.
    """
    most = machine.memory_bytes // WORKER_BYTES
    if workers > most > 0:
        raise UsageError(
            f"workers: found {workers}, allowed 1 to {most}: each is a process that needs memory"
        )


def require_threads(threads: int, machine: Machine, processors: Processors) -> None:
    """Raises UsageError for more threads of a kernel than processors: spinning threads block other threads.

    Allowed are the processors that this process may use, according to ``processors``, and at most those of
    ``machine``, which may be another one whose code is verified here. A GPU, and a machine with an unknown
    number of processors (0), have no limit of threads.
    """
    most = 0 if machine.chip else machine.logical_cores  # 0: of a GPU, or unknown
    if most and threads > processors.usable and processors.limit:
        raise UsageError(f"threads: found {threads}, allowed up to {processors.usable}: {processors.limit}")
    if threads > most > 0:
        raise UsageError(f"threads: found {threads}, allowed up to {most}, the processors of {machine.name}")
    if most and threads > processors.usable:
        allowed = f"{processors.usable}, the processors of this machine, which verifies"
        raise UsageError(f"threads: found {threads}, allowed up to {allowed}")
