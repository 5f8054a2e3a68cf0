"""Converts the work of a program on buffers to kernels.

Takes linalg, scf.forall and scf.parallel on memrefs; produces a host function of launches. A matmul with a
script becomes ``gpu.launch_func`` of its tuned kernels, all other work ``gpu.launch`` with one thread per
element. A loop with ``#gpu.loop_dim_map`` gets the blocks and threads that the attribute requests, by
upstream's pass. Loops that reduce to a value, and loops around launches, stay on the host. Rejected: linalg
operations that do not become loops, such as softmax.
"""

from tuner.core.chips import Chip
from tuner.core.device_program import MatmulKernel
from tuner.core.problem import Problem
from tuner.core.target import Script
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.walking import walk
from tuner.programs.lower.copies_in_rows import copy_by_contiguous_parts
from tuner.programs.lower.host_parallel_loops import make_host_loops
from tuner.programs.lower.launch_parallel_loops import launch_parallel_loops
from tuner.programs.lower.matmuls.find_matmuls import find_matmuls
from tuner.programs.lower.matmuls.insert_gpu_kernels import insert_gpu_kernels
from tuner.programs.lower.payload_checks import reject_linalg
from tuner.programs.lower.read_program import ProgramPayload

TO_PARALLEL = (
    "builtin.module(func.func(convert-linalg-to-parallel-loops,scf-forall-to-parallel),"
    "lower-affine,canonicalize,cse)"
)
MAPPING = "mapping"  # attribute that maps a loop to blocks and threads: #gpu.loop_dim_map
MAPPED_TO_LAUNCHES = "builtin.module(func.func(convert-parallel-loops-to-gpu),lower-affine,canonicalize,cse)"


def problems_of(payload: ProgramPayload) -> tuple[Problem, ...]:
    """Returns the distinct matmul problems of a program, in program order.

    Generalizes named linalg operations in place. Raises CandidateError(COMPILE) for a matmul whose output is
    one of its factors.
    """
    return tuple(dict.fromkeys(match.problem for match in find_matmuls(payload)))


def launch_kernels(
    payload: ProgramPayload, scripts: dict[Problem, Script], chip: Chip
) -> tuple[MatmulKernel, ...]:
    """Converts a payload's linalg operations and parallel loops to launches of GPU kernels, in place.

    A matmul that has a script becomes launches of the script's kernels, other work one thread per element.
    Returns the kernels whose single launch computes a whole matmul. Raises CandidateError for a script that
    fails, and COMPILE for linalg operations that do not become loops.
    """
    matches = [match for match in find_matmuls(payload) if match.problem in scripts]
    matmuls = insert_gpu_kernels(payload.module, matches, scripts, chip)
    launch_loops(payload)
    return matmuls


def launch_loops(payload: ProgramPayload) -> None:
    """Converts a payload's linalg and parallel loops to launches, one thread per element, in place.

    Raises CandidateError(COMPILE) for linalg operations that do not become loops.
    """
    copy_by_contiguous_parts(payload.function)
    run_passes(payload.module, TO_PARALLEL)
    make_host_loops(payload.function)
    if any(MAPPING in loop.attributes for loop in walk(payload.function, "scf.parallel")):
        run_passes(payload.module, MAPPED_TO_LAUNCHES)
    launch_parallel_loops(payload.function)
    run_passes(payload.module, "builtin.module(canonicalize,cse)")
    reject_linalg(payload.function)
