"""Points of the GPU strategies that benchmarks compile, and the instructions that their code must contain."""

import time
from dataclasses import dataclass

from tuner.core.candidate import Candidate
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import CandidateError, UsageError
from tuner.core.gpu import chip_of
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.target.compiler import GpuCompiler, Ptxas, find_ptxas
from tuner.space.scripts.strategy import Binder, load_strategy

TENSOR_CORES, CUDA_CORES, HOPPER = "matmul_gpu_mma_sync", "matmul_gpu_simt", "matmul_gpu_wgmma"
Knob = int | str
USUAL: dict[str, dict[str, Knob]] = {  # where a point says nothing else
    TENSOR_CORES: {
        **dict.fromkeys(("block_m", "block_n"), 128),
        **dict.fromkeys(("warps_m", "warps_n"), 2),
        **dict.fromkeys(("group", "splits"), 1),
        "block_k": 32,
        "depth": 3,
        "prefetch": 1,
        "split_by": "atomic",
        "exchange": 0,
        "shared": "swizzle",
        "pack": 0,
        "promote": 0,
    },
    CUDA_CORES: {
        **dict.fromkeys(("block_m", "block_n"), 128),
        **dict.fromkeys(("thread_m", "thread_n", "unroll_k", "vector_a", "vector_b"), 4),
        **dict.fromkeys(("split_m", "split_n", "depth"), 2),
        "block_k": 16,
        "group": 1,
        "pad_bytes": 0,
        "prefetch": 0,
        "min_blocks": 0,
        "order_products": 0,
        "transpose": 0,
        "tail_splits": 1,
    },
    HOPPER: {
        "block_m": 128,
        "block_n": 256,
        "block_k": 64,
        "stages": 4,
        "consumers": 2,
        "cluster": "1x1",
        "group": 8,
        "bands": "rows",
        "tiles": 1,
        "stores": "direct",
        "splits": 1,
        "split_by": "workspace",
    },
}


@dataclass(frozen=True)
class Point:
    """A candidate of one problem, and the instructions that its machine code must contain."""

    problem: Problem
    candidate: Candidate
    mnemonics: tuple[str, ...]  # prefixes, as nvdisasm spells them

    @property
    def text(self) -> str:
        """Returns one line that identifies the point."""
        return f"{self.problem.key} {self.candidate.text}"


def point(strategy: str, problem: Problem, mnemonics: tuple[str, ...] = (), **knobs: Knob) -> Point:
    """Returns a point with the strategy's usual knobs, changed."""
    return Point(problem, Candidate.of(strategy, USUAL[strategy] | knobs), mnemonics)


# LDGSTS is cp.async, LDSM ldmatrix; HMMA.16816 multiplies f16 and bf16, HMMA.1688 tf32.
F16 = ("HMMA.16816.F32", "LDSM.16", "LDGSTS.E.BYPASS.LTC128B.128")
BF16 = ("HMMA.16816.F32.BF16", "LDSM.16", "LDGSTS.E.BYPASS.LTC128B.128")
TF32 = ("HMMA.1688.F32.TF32", "LDSM.16", "LDGSTS.E.BYPASS.LTC128B.128")
F32 = ("FFMA", "LDS.128", "LDGSTS.E.BYPASS.128")
F64 = ("DFMA", "LDS.128", "LDGSTS.E.BYPASS.128")
SQUARE = (4096, 4096, 4096)
DEEP = (5376, 2048, 5376)
POINTS = (
    point(TENSOR_CORES, Matmul(*SQUARE, "f16"), F16),
    point(TENSOR_CORES, Matmul(*SQUARE, "bf16"), BF16),
    point(TENSOR_CORES, Matmul(*SQUARE, "f16", "nt"), F16),
    point(TENSOR_CORES, Matmul(*SQUARE, "f16", "tn"), F16),
    point(TENSOR_CORES, Matmul(1000, 1000, 1000, "f16"), F16),
    point(TENSOR_CORES, Matmul(*DEEP, "f16"), F16, block_n=256, warps_n=4, block_k=64, depth=2),
    point(TENSOR_CORES, Matmul(*SQUARE, "tf32", "nt"), TF32, block_k=16),
    point(CUDA_CORES, Matmul(*SQUARE), F32),
    point(CUDA_CORES, Matmul(*DEEP), F32, depth=4),
    point(CUDA_CORES, Matmul(2048, 2048, 2048, "f64"), F64, block_m=64, block_n=64, vector_a=2, vector_b=2),
)

# HGMMA is wgmma, QGMMA of 8-bit floats; UTMALDG and UTMASTG are copies by TMA.
WGMMA, FP8 = ("HGMMA.64x256x16.F32", "UTMALDG.2D"), ("QGMMA.64x256x32.F32.E4M3.E4M3", "UTMALDG.2D")
HOPPER_POINTS = (
    point(HOPPER, Matmul(*SQUARE, "f16"), WGMMA),
    point(HOPPER, Matmul(*SQUARE, "f16", "nt"), WGMMA),
    point(HOPPER, Matmul(*SQUARE, "bf16", "tn"), ("HGMMA.64x256x16.F32.BF16", "UTMALDG.2D")),
    point(HOPPER, Matmul(*SQUARE, "tf32", "nt"), ("HGMMA.64x256x8.F32.TF32", "UTMALDG.2D"), block_k=32),
    point(HOPPER, Matmul(*SQUARE, "e4m3", "nt"), FP8, block_k=128),
    point(HOPPER, Matmul(*SQUARE, "f16"), ("UTMALDG.2D.MULTICAST",), cluster="2x1"),
    point(HOPPER, Matmul(*SQUARE, "f16"), WGMMA, tiles=4),
    point(HOPPER, Matmul(*SQUARE, "f16", "nn", "bias_relu", "f16"), ("STSM", "UTMASTG.2D"), stores="tma"),
    point(HOPPER, Matmul(*SQUARE, "f16", "nn", "bias_relu", "f16"), ("SHFL", "STG"), stores="exchange"),
    point(HOPPER, Matmul(512, 512, 16384, "f16"), WGMMA, splits=4, group=1),
)


def points_of(chip: str) -> tuple[Point, ...]:
    """Returns the points of a chip: points of wgmma where the chip has it."""
    return HOPPER_POINTS if chip_of(chip).is_specific else POINTS


@dataclass(frozen=True)
class Built:
    """A compiled point."""

    program: KernelCode
    stage_s: tuple[tuple[str, float], ...]  # (stage, seconds)

    @property
    def compile_s(self) -> float:
        """Returns the seconds of all stages."""
        return sum(seconds for _, seconds in self.stage_s)


def require_ptxas() -> Ptxas:
    """Returns the installed ptxas; raises UsageError without one, or for one that cannot run."""
    found = find_ptxas()
    if found is None:
        raise UsageError("ptxas: missing", "pip install nvidia-cuda-nvcc")
    return found


class Builder:
    """Compiles points for one chip, in one process and one MLIR context."""

    def __init__(self, chip: str) -> None:
        """Runs ptxas once for its version, so that no point's time includes that."""
        ptxas = require_ptxas()
        self._compiler = GpuCompiler(chip_of(chip), lambda: ptxas)
        self._binders: dict[tuple[str, Problem], Binder] = {}

    def build(self, wanted: Point) -> Built:
        """Compiles one point. Raises CandidateError, also for a program that cannot be launched."""
        start = time.perf_counter()
        script = self._binder(wanted).bind(wanted.candidate)
        bind_s = time.perf_counter() - start
        artifact = self._compiler.compile(wanted.problem, script)
        if artifact.refusal is not None:
            raise CandidateError(artifact.refusal.stage, artifact.refusal.reason)
        return Built(artifact.code, (("bind", bind_s), *artifact.stage_s))

    def _binder(self, wanted: Point) -> Binder:
        """Returns the binder that a run would use for all candidates: templates are compiled once."""
        key = (wanted.candidate.strategy, wanted.problem)
        if key not in self._binders:
            strategies = (load_strategy(wanted.candidate.strategy),)
            self._binders[key] = Binder(strategies, wanted.problem, wanted.problem.variables(), 1)
        return self._binders[key]
