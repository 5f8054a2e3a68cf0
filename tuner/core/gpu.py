"""The NVIDIA chips that code can be generated for, with their limits and peak rates."""

from dataclasses import dataclass

from tuner.core.errors import unknown_value

KIB = 1024
WARP_THREADS = 32
MAX_THREADS_PER_BLOCK = 1024  # CUDA programming guide, compute capabilities: the same for every chip
MAX_REGISTERS_PER_THREAD = 255  # same table
REGISTERS = 64 * KIB  # 32-bit, of a multiprocessor and of a block; same table
RESERVED_SHARED_BYTES = KIB  # of each block, taken by the driver since sm_80; Ampere tuning guide, 1.4.5.1
MAX_BLOCK = (1024, 1024, 64)  # threads along x, y, z; same table
MAX_GRID = (2**31 - 1, 65535, 65535)  # blocks along x, y, z; same table

# Of the largest product of each chip that is sold, for machines that do not report it; NVIDIA's data sheets:
# A100, A40, L40S, H200, B200, RTX PRO 6000.
USUAL_MULTIPROCESSORS = {
    "sm_80": 108,
    "sm_86": 84,
    "sm_89": 142,
    "sm_90": 132,
    "sm_90a": 132,
    "sm_100": 148,
    "sm_120": 188,
}
# Dense flop of a multiprocessor in one clock, sums in f32 (f64 of f64, i32 of i8), tensor or CUDA cores.
# Chips of which several products differ in this (GeForce adds in f32 at half the speed) are left out.
# Keys are chips as the driver reports them: sm_90, never sm_90a.
# sm_80: NVIDIA A100 whitepaper v1.0, table 3; sm_90: NVIDIA H100 whitepaper v1.04, table 2
CLOCK_FLOP = {
    "sm_80": {"f16": 2048, "bf16": 2048, "tf32": 1024, "f32": 128, "f64": 128, "i8": 4096}
    | {"tf32x3": 1024 // 3},  # three products for each
    "sm_90": {"f16": 4096, "bf16": 4096, "tf32": 2048, "f32": 256, "f64": 256}
    | {"tf32x3": 2048 // 3, "bf16x6": 4096 // 6}
    | dict.fromkeys(("i8", "e4m3", "e5m2"), 8192),
}


@dataclass(frozen=True)
class Chip:
    """An NVIDIA chip, such as sm_90, with the limits of its compute capability.

    Source: CUDA programming guide, technical specifications per compute capability; blocks and barriers as in
    ``cuda_occupancy.h`` of CUDA 13.0.
    """

    name: str  # as ptxas and LLVM spell it: "sm_90"
    features: str  # PTX version that LLVM writes, the oldest with all that tuner's kernels use on the chip
    shared_bytes: int  # of a multiprocessor, for blocks
    max_threads: int  # resident on a multiprocessor
    max_blocks: int  # resident on a multiprocessor
    max_barriers: int  # named barriers of all blocks of a multiprocessor; before sm_90 each block has 16

    @property
    def max_shared_bytes(self) -> int:
        """Returns the bytes of shared memory that one block may use at most, static and dynamic together."""
        return self.shared_bytes - RESERVED_SHARED_BYTES

    @property
    def max_warps(self) -> int:
        """Returns how many warps of 32 threads can be resident on a multiprocessor."""
        return self.max_threads // WARP_THREADS

    @property
    def capability(self) -> int:
        """Returns the compute capability times ten: 90 for sm_90 and sm_90a."""
        return int(self.name.removeprefix("sm_").rstrip("a"))

    @property
    def is_specific(self) -> bool:
        """Returns whether code may use features of this architecture alone, such as wgmma on sm_90a."""
        return self.name.endswith("a")

    @property
    def has_wgmma(self) -> bool:
        """Returns whether code may multiply by wgmma."""
        return self.is_specific and self.capability == 90


CHIPS = {
    chip.name: chip
    for chip in (
        Chip("sm_80", "+ptx80", 164 * KIB, max_threads=2048, max_blocks=32, max_barriers=32 * 16),
        Chip("sm_86", "+ptx80", 100 * KIB, max_threads=1536, max_blocks=16, max_barriers=16 * 16),
        Chip("sm_89", "+ptx84", 100 * KIB, max_threads=1536, max_blocks=24, max_barriers=24 * 16),
        Chip("sm_90", "+ptx84", 228 * KIB, max_threads=2048, max_blocks=32, max_barriers=64),
        Chip("sm_90a", "+ptx84", 228 * KIB, max_threads=2048, max_blocks=32, max_barriers=64),
        Chip("sm_100", "+ptx86", 228 * KIB, max_threads=2048, max_blocks=32, max_barriers=64),
        Chip("sm_120", "+ptx87", 100 * KIB, max_threads=1536, max_blocks=24, max_barriers=24),
    )
}


def chip_of(name: str) -> Chip:
    """Returns the chip with a name such as sm_90a. Raises UsageError for an unknown name."""
    if name not in CHIPS:
        raise unknown_value("chip", name, CHIPS)
    return CHIPS[name]


def most_specific(chip: str) -> str:
    """Returns the name under which code for a GPU may use all it has: sm_90a for sm_90; else the name."""
    if f"{chip}a" in CHIPS:
        return f"{chip}a"
    return chip
