import pytest

from tests.targets.gpu.machine_code.listings import FFMA, LDS, Line, kernel_of
from tuner.targets.gpu.machine_code.busiest_part import LAUNCH_CYCLES, BlockWork, KernelCounts
from tuner.targets.gpu.machine_code.listing import Kernel

BLOCKS = BlockWork(blocks=200, warps=8, resident=2, fetched_bytes=2400.0, stored_bytes=0.0)


def counts(kernel: Kernel, executed: float = 10.0, capability: int = 80, path: float = 0.0) -> KernelCounts:
    each = (executed,) * len(kernel.code)
    return KernelCounts(kernel, each, {0: path} if path else {}, 1024.0, capability)


def test_each_part_is_counted_for_the_warps_that_share_it() -> None:
    kernel = kernel_of(LDS, FFMA, Line("IADD3 R0, R1, R2, R3"), Line("HMMA.16816.F32 R4, R8, R12, R4", 8))
    parts = counts(kernel, path=3.0).parts(BLOCKS, 2)
    assert parts.issue == 4 * 40  # 16 warps on 4 partitions
    assert parts.products == 4 * 10 * (2 + 64 * 32 * 4 / 1024)
    assert parts.integers == 4 * 10 * 2
    assert parts.memory == 16 * 10 * 3
    assert parts.second_level == pytest.approx(2 * 2400 / 24)
    assert parts.own_way == 10 * (1 + 2 + 1 + 8)
    assert parts.busiest == parts.memory


def test_two_pipes_multiply_twice_as_fast_unless_registers_lie_in_one_bank() -> None:
    spread, one_bank = kernel_of(FFMA), kernel_of(Line("FFMA R0, R2, R4, R6"))
    kept = kernel_of(Line("FFMA R0, R2.reuse, R4, R6"))
    assert counts(spread, 1, 80).parts(BLOCKS, 2).products == 4 * 2
    assert counts(spread, 1, 86).parts(BLOCKS, 2).products == 4 * 1
    assert counts(one_bank, 1, 86).parts(BLOCKS, 2).products == 4 * 2
    assert counts(kept, 1, 86).parts(BLOCKS, 2).products == 4 * 1


def test_waves_follow_one_another_and_the_last_takes_its_share() -> None:
    one = counts(kernel_of(FFMA), 1000.0)
    wave = one.parts(BLOCKS, 2).busiest
    assert one.cycles(BLOCKS, 100) == wave + LAUNCH_CYCLES
    assert one.cycles(BLOCKS, 50) == 2 * (wave + LAUNCH_CYCLES)
    assert one.cycles(BLOCKS, 80) == wave + LAUNCH_CYCLES + wave / 2 + LAUNCH_CYCLES


def test_few_blocks_do_not_share_a_multiprocessor() -> None:
    one = counts(kernel_of(FFMA), 1000.0)
    assert BLOCKS.together(200) == BLOCKS.together(10_000) == 1
    assert one.cycles(BLOCKS, 200) == one.parts(BLOCKS, 1).busiest + LAUNCH_CYCLES
