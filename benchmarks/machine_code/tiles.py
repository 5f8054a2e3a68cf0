"""The tiles whose main loops are compared, one for each kind of kernel."""

from dataclasses import dataclass
from typing import Any

from tests.support.gpu_points import CUDA_CORES, HOPPER, TENSOR_CORES, Point, point
from tuner.core.matmul import Matmul

CHIPS, HOPPER_CHIP = ("sm_80", "sm_90"), "sm_90a"
SIDE = 4096
LARGE = (SIDE, SIDE, SIDE)
WIDE: dict[str, Any] = {"block_n": 256, "warps_n": 4}


@dataclass(frozen=True)
class ComparedTile:
    """A tile of a matmul in the tuner's strategies, and the same tile in Triton."""

    name: str
    ours: Point
    # (chip, stall cycles) of the main loop of CUTLASS's device::Gemm of the same tile and buffers; ptxas 13.0
    cutlass_cycles: tuple[tuple[str, int], ...] = ()
    is_variant: bool = False  # of a tile that others have already
    chips: tuple[str, ...] = CHIPS

    @property
    def knobs(self) -> dict[str, int]:
        """Returns the knobs with integer values."""
        return {name: value for name, value in self.ours.candidate.choices if isinstance(value, int)}

    @property
    def warps(self) -> int:
        """Returns the number of warps of a block of the tuner's kernel."""
        knobs = self.knobs
        if "consumers" in knobs:
            return 4 * knobs["consumers"]  # those that multiply
        if "warps_m" in knobs:
            return knobs["warps_m"] * knobs["warps_n"]
        sums = knobs["thread_m"] * knobs["split_m"] * knobs["thread_n"] * knobs["split_n"]
        return knobs["block_m"] * knobs["block_n"] // sums // 32


def _cutlass(sm_80: int, sm_90: int) -> tuple[tuple[str, int], ...]:
    return (("sm_80", sm_80), ("sm_90", sm_90))


_F16, _F16_NT = Matmul(*LARGE, "f16"), Matmul(*LARGE, "f16", "nt")
_TF32, _TF32_NT = Matmul(*LARGE, "tf32"), Matmul(*LARGE, "tf32", "nt")
_SMALL: dict[str, Any] = {"block_m": 64, "block_n": 64, "block_k": 64}
TILES = (
    ComparedTile("f16 nn 128x128x32", point(TENSOR_CORES, _F16), _cutlass(518, 393)),
    ComparedTile("f16 nt 128x128x32", point(TENSOR_CORES, _F16_NT)),
    ComparedTile("f16 nn 128x256x32", point(TENSOR_CORES, _F16, **WIDE), _cutlass(518, 393)),
    ComparedTile("f16 nn 128x128x64", point(TENSOR_CORES, _F16, block_k=64, depth=2)),
    ComparedTile(
        "f16 nn 128x256x64", point(TENSOR_CORES, _F16, **WIDE, block_k=64, depth=2), _cutlass(1036, 783)
    ),
    ComparedTile("f16 nn 64x64x64", point(TENSOR_CORES, _F16, **_SMALL), _cutlass(273, 247)),
    ComparedTile(
        "f16 nn 64x64x64 spread", point(TENSOR_CORES, _F16, **_SMALL, prefetch=2), _cutlass(273, 247), True
    ),
    ComparedTile("f16 nn 1000", point(TENSOR_CORES, Matmul(1000, 1000, 1000, "f16"), depth=2)),
    ComparedTile(
        "tf32 nt 128x128x32", point(TENSOR_CORES, _TF32_NT, block_k=32, depth=2), _cutlass(1036, 783)
    ),
    ComparedTile("tf32 nt 128x128x16", point(TENSOR_CORES, _TF32_NT, block_k=16)),
    ComparedTile("tf32 nn 128x128x32", point(TENSOR_CORES, _TF32, block_k=32, depth=2)),
    ComparedTile("f32 nn 128x128x16", point(CUDA_CORES, Matmul(*LARGE))),
    ComparedTile(
        "f32 nn 128x128x16 bounded", point(CUDA_CORES, Matmul(*LARGE), min_blocks=2), is_variant=True
    ),
    ComparedTile(
        "f32 nn 128x128x16 ahead",
        point(CUDA_CORES, Matmul(*LARGE), unroll_k=2, depth=4, prefetch=1, min_blocks=2),
        is_variant=True,
    ),
    ComparedTile("f32 nn 128x128x32", point(CUDA_CORES, Matmul(*LARGE), block_k=32)),
    ComparedTile(
        "f32 nn 128x128x8",
        point(CUDA_CORES, Matmul(*LARGE), block_k=8, unroll_k=1, depth=4, prefetch=1),
        _cutlass(1043, 649),
    ),
    ComparedTile("f16 nn 128x256x64 wgmma", point(HOPPER, _F16), chips=(HOPPER_CHIP,)),
)
# Of warps of 64x64: whose stalls may be so many times the ideal.
HELD = (
    *("f16 nn 128x128x32", "f16 nn 128x256x32", "f16 nn 128x128x64", "f16 nn 128x256x64"),
    "tf32 nt 128x128x32",
    "tf32 nn 128x128x32",
)
STALLS_OVER_IDEAL = {"sm_80": 1.05, "sm_90": 1.08}
