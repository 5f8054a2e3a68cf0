"""Functions that the target kinds ``cuda`` and ``simulator`` share: compiling, reading code, calling."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tuner.core.chips import chip_of
from tuner.core.element_types import FLOAT8S
from tuner.core.errors import UsageError
from tuner.core.kernel_program import KernelProgram
from tuner.core.problem import INPUT_DTYPES, NUMPY_ALIGNMENT, WARM, Problem
from tuner.core.runs import StoredTrial
from tuner.core.target import Script
from tuner.core.target_name import TargetName

if TYPE_CHECKING:
    from tuner.workers.protocol import Factory

DEFAULT_CHIP = "sm_90"
FLOAT8_CAPABILITY = 89  # PTX ISA, "mma": .e4m3 and .e5m2
COMPILE_TIMEOUT_S = 90.0  # ptxas is ended after 60


def require_chip_types(problem: Problem, target: TargetName) -> None:
    """Raises UsageError for a problem that the chip cannot compute, or that speaks of a CPU's memory.

    Tensor cores before sm_89 have no 8-bit floats. Alignment and cache states are of CPUs.
    """
    if problem.align != NUMPY_ALIGNMENT:
        raise UsageError(
            f"--align {problem.align} cannot be combined with {target.text}: the driver aligns device memory"
        )
    if problem.cache != WARM:
        raise UsageError(
            f"--cache {problem.cache} cannot be combined with {target.text}: a GPU's result has both times"
        )
    if problem.dtype in FLOAT8S and chip_of(target.detail).capability < FLOAT8_CAPABILITY:
        taken = ", ".join(dtype for dtype in INPUT_DTYPES if dtype not in FLOAT8S)
        later = f"sm_{FLOAT8_CAPABILITY} and later take it"
        raise UsageError(f"dtype: found {problem.dtype!r}, allowed {taken} on {target.detail}; {later}")


def compiler_factory(target: TargetName) -> "Factory":
    """Returns a recipe to build the compiler for the target's chip in another process.

    The compiler looks for ptxas in the process that builds it.
    """
    from tuner.workers.protocol import Factory

    return Factory("tuner.targets.gpu.compiler:GpuCompiler", (chip_of(target.detail),))


def gpu_source(problem: Problem, script: str) -> str:
    """Returns the payload of a problem for a GPU, as MLIR text, before ``script`` transforms it.

    The script's comments decide the workspace of split-K and packed operands. Raises UsageError where these
    are not possible.
    """
    from tuner.payload.gpu import gpu_payload_mlir, scratch_in

    return gpu_payload_mlir(problem, scratch_in(script, problem))


def gpu_code(target: TargetName, problem: Problem, script: Script) -> str:
    """Returns the PTX that a transform script compiles to for the target's chip; ptxas is not used.

    Raises CandidateError for a script that does not compile.
    """
    from tuner.targets.gpu.compiler import GpuCompiler

    return str(GpuCompiler(chip_of(target.detail), lambda: None).compile(problem, script).code)


def gpu_assembly(_code: str, program: KernelProgram | None) -> str:
    """Returns the machine code (SASS) of a compiled program as text; "" without nvdisasm or without a cubin.

    The first parameter is not used.
    """
    from tuner.targets.gpu.machine_code.sass import sass

    return sass(program)


def load_on_gpu(problem: Problem, trial: StoredTrial, program: KernelProgram | None) -> Callable[..., object]:
    """Returns a trial's compiled program, loaded onto this machine's GPU, as a callable on arrays.

    Raises UsageError where ``program`` is None (no program is stored for the trial), DeviceError without a
    GPU, CandidateError(LOAD) where the GPU lacks memory.
    """
    if program is None:
        raise UsageError(f"trial {trial.id}: no compiled program is stored")
    from tuner.targets.gpu.callable import load_program

    kernel: Callable[..., object] = load_program(problem, program)
    return kernel


def assembler_text() -> str:
    """Returns text that says which ptxas is used on this machine and which known defects it has.

    Without ptxas, or where it does not work, the text says so.
    """
    from tuner.targets.gpu.ptxas import find_ptxas
    from tuner.targets.gpu.ptxas_defects import defect_line, defects_of

    try:
        ptxas = find_ptxas()
    except UsageError as error:
        return str(error)
    if ptxas is None:
        return "no ptxas, so PTX only and no resources (pip install nvidia-cuda-nvcc)"
    known = "".join(f"; {defect_line(defect)}" for defect in defects_of(ptxas.version))
    return f"ptxas {ptxas.version} of {ptxas.tool.origin}: {ptxas.tool.path}{known}"
