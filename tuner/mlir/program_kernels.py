"""From a program on buffers to a host function whose work is done by kernels: ``gpu.launch`` everywhere.

Matmuls become a script's kernels; other linalg ops, ``scf.forall`` and ``scf.parallel`` become kernels with
one thread for each element.
"""

from tuner.chips import Chip
from tuner.mlir.kernel_splicing import splice
from tuner.mlir.matmul_sites import matmul_sites
from tuner.mlir.passes.launch_parallel_loops import launch_parallel_loops
from tuner.mlir.program_payload import ProgramPayload, reject_linalg, run_passes
from tuner.problem import Problem
from tuner.target import Script

TO_PARALLEL = (
    "builtin.module(func.func(convert-linalg-to-parallel-loops,scf-forall-to-parallel),"
    "lower-affine,canonicalize,cse)"
)


def problems_of(payload: ProgramPayload) -> tuple[Problem, ...]:
    """Returns the distinct matmuls of a program, in the order they are met."""
    return tuple(dict.fromkeys(site.problem for site in matmul_sites(payload)))


def launch_kernels(payload: ProgramPayload, scripts: dict[Problem, Script], chip: Chip) -> None:
    """Rewrites in place; matmuls without a script become loops as well. Raises CandidateError."""
    sites = [site for site in matmul_sites(payload) if site.problem in scripts]
    splice(payload.module, sites, scripts, chip)
    run_passes(payload.module, TO_PARALLEL)
    launch_parallel_loops(payload.function)
    run_passes(payload.module, "builtin.module(canonicalize,cse)")
    reject_linalg(payload)
