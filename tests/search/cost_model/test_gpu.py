"""Costs of GPU schedules, and occupancy against 420 answers of NVIDIA's own calculator.

``occupancy_reference.csv`` was written by a program around ``cuda_occupancy.h`` of CUDA 13.0
(``cudaOccMaxActiveBlocksPerMultiprocessor``, carve-out "max shared", 1 KiB reserved for each block).
"""

import csv
import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.compiled_code import KernelCode, Launch, Resources
from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu import CHIPS, MAX_REGISTERS_PER_THREAD, REGISTERS, Chip, chip_of
from tuner.core.matmul import GroupedMatmul, Matmul
from tuner.core.problem import Problem
from tuner.gpu.cost_model.gpu import GpuTiles, by_kind, cycles, fma_per_cycle
from tuner.gpu.cost_model.occupancy import (
    BlockNeeds,
    block_shared_bytes,
    blocks_by_registers,
    blocks_per_multiprocessor,
    occupancy,
    require_launchable,
)
from tuner.gpu.cost_model.shared_memory import access_cycles, passes, stream_cycles

CHIP = chip_of("sm_90")
MULTIPROCESSORS = 132
LARGE = Matmul(4096, 4096, 4096, "f16")
LANES = np.arange(32)


def tiles(**changes: float) -> GpuTiles:
    """Returns one schedule: 128 x 128 x 32 by four warps of tensor cores, copies two tiles ahead."""
    blocks = {"block_m": 128, "block_n": 128, "block_k": 32, "depth": 2, "splits": 1, "more_launches": 0}
    launched = {"threads": 128, "registers": 200, "shared_bytes": 49152}
    plain = {**blocks, **launched, "issued": 10, "memory": 4, "waits": 2}
    return GpuTiles(**{name: np.array([float(value)]) for name, value in {**plain, **changes}.items()})


def cost(problem: Problem = LARGE, multiprocessors: int = MULTIPROCESSORS, **changes: float) -> float:
    return float(cycles(tiles(**changes), problem, CHIP, multiprocessors)[0])


def test_no_schedule_beats_the_multipliers_what_wastes_the_gpu_costs_more_and_each_has_a_rate() -> None:
    """An unknown number of multiprocessors is the usual one."""
    assert cost() >= 4096**3 / (MULTIPROCESSORS * fma_per_cycle(LARGE, CHIP))
    assert cost(multiprocessors=0) == cost(multiprocessors=132)
    whole = Matmul(128 * 12, 128 * 11, 4096, "f16")  # 132 blocks
    assert cost(Matmul(128 * 12 + 1, 128 * 11, 4096, "f16")) > 1.2 * cost(whole)
    assert cost(whole) == pytest.approx(cost(Matmul(128 * 11, 128 * 11, 4096, "f16")))
    few = Matmul(256, 256, 8192, "f16")
    assert cost(few, splits=8) < cost(few, splits=8, more_launches=1) < cost(few)
    assert cost(LARGE, splits=8) > cost(LARGE)
    changes: tuple[tuple[dict[str, float], dict[str, float]], ...] = (
        ({"depth": 2}, {"depth": 0}),  # every tile is waited for
        ({"block_k": 32}, {"block_k": 8}),  # more turns than latency can be hidden in
        # one warp keeps one partition busy at most, where only one block fits
        ({"shared_bytes": 200 << 10}, {"shared_bytes": 200 << 10, "threads": 32}),
        ({"memory": 4}, {"memory": 32}),  # shared memory is the bottleneck
        ({"issued": 10}, {"issued": 80}),  # more instructions than partitions issue
        ({"waits": 2, "depth": 0}, {"waits": 200, "depth": 0}),
        ({"registers": 100}, {"registers": 255, "threads": 256}),
        ({}, {"block_m": 32, "block_n": 32}),  # four times the way from the second level of cache
    )
    for better, worse in changes:
        assert cost(LARGE, MULTIPROCESSORS, **better) < cost(LARGE, MULTIPROCESSORS, **worse)
    for name, value in (("shared_bytes", 300 * 1024), ("registers", 300), ("threads", 2048)):
        assert cost(LARGE, MULTIPROCESSORS, **{name: value}) == np.inf
    for name, dtype in itertools.product(CHIPS, ("f16", "bf16", "tf32", "f32", "f64")):
        assert fma_per_cycle(Matmul(8, 8, 8, dtype), replace(CHIP, name=name)) > 0


def test_rows_of_each_group_have_blocks_of_their_own() -> None:
    of_one = Matmul(4096, 1024, 1024, "f16")
    assert cost(GroupedMatmul(1, 4096, 1024, 1024, "f16")) == cost(of_one)
    small = GroupedMatmul(64, 4096, 1024, 1024, "f16")  # blocks of 128 rows are half empty
    assert cost(small) > 1.5 * cost(of_one)
    assert cost(small, block_m=64, registers=120) < cost(small)
    assert cost(of_one, block_m=64, registers=120) > cost(of_one)


def test_an_access_costs_its_layer_at_least_by_the_passes_of_its_words_and_equal_rows_once() -> None:
    for words, width, expected in (
        (LANES, 1, 1),  # each bank once
        (0 * LANES, 1, 1),  # one word for all lanes
        (2 * LANES, 1, 2),
        (32 * LANES, 1, 32),  # one bank
        (33 * LANES, 1, 1),  # rows of a padded tile
        (2 * LANES, 2, 2),  # 256 bytes in a row
        (4 * LANES, 4, 4),
        (0 * LANES, 4, 1),  # all parts ask for the same four words
        (4 * (LANES // 8), 4, 1),  # sixteen words, of sixteen banks
        (32 * LANES, 4, 32),
    ):
        assert passes(words, width) == expected
    for operation, words, width, compute_capability, cycles_of_one in (
        ("load_shared", 0 * LANES, 4, 86, 2.0),
        ("load_shared", 0 * LANES, 4, 75, 4.0),  # twice as much on Turing
        ("load_global", LANES, 1, 86, 1.5),
        ("load_shared", 2 * LANES, 1, 86, 2.0),
    ):
        assert access_cycles(operation, words, width, compute_capability) == cycles_of_one
    costs = [access_cycles("load_shared", 0 * LANES, width, 90) for width in (0, 1, 3, 2, 8, 4)]
    assert costs[::2] == costs[1::2]  # as of the next narrower one
    assert stream_cycles("store_shared", 4, 90) == 4.0
    seen: list[tuple[int, int]] = []

    def cycles(one: int, other: int) -> float:
        seen.append((one, other))
        return one + 10.0 * other

    found = by_kind((np.array([1.0, 2.0, 1.0]), np.array([3.0, 3.0, 3.0])), cycles)
    assert (found.tolist(), seen) == ([31.0, 32.0, 31.0], [(1, 3), (2, 3)])


@given(st.lists(st.integers(0, 4096), min_size=32, max_size=32))
def test_narrow_accesses_take_as_many_passes_as_the_busiest_bank_has_words(words: list[int]) -> None:
    banks = Counter(word % 32 for word in set(words))
    assert passes(np.array(words), 1) == max(banks.values())


@given(st.lists(st.integers(0, 1024), min_size=32, max_size=32), st.sampled_from([2, 4]))
def test_wide_accesses_take_no_more_passes_than_their_parts_alone(words: list[int], width: int) -> None:
    starts = width * np.array(words)
    parts = [
        Counter(word % 32 for word in set((part[:, None] + np.arange(width)).ravel().tolist()))
        for part in np.split(starts, width)
    ]
    alone = [max(part.values()) for part in parts]
    assert max(alone) <= passes(starts, width) <= sum(alone)


REFERENCE = Path(__file__).parent / "occupancy_reference.csv"
ROWS = list(csv.DictReader(REFERENCE.read_text().splitlines()))
NEEDED = (st.integers(1, 1024), st.integers(0, 255), st.integers(0, 227 * 1024), st.integers(0, 16))
NEEDS = st.builds(BlockNeeds, *NEEDED)
ANY_CHIP = st.sampled_from(list(CHIPS.values()))


@pytest.mark.parametrize("chip", sorted({row["chip"] for row in ROWS}))
def test_blocks_are_those_of_the_vendors_calculator(chip: str) -> None:
    rows = [row for row in ROWS if row["chip"] == chip]
    assert len(rows) == 70
    for row in rows:
        needs = BlockNeeds(*(int(row[name]) for name in ("threads", "registers", "shared_bytes", "barriers")))
        assert blocks_per_multiprocessor(CHIPS[chip], needs) == int(row["blocks"]), row


@given(ANY_CHIP, NEEDS)
def test_resident_blocks_never_ask_for_more_than_there_is(chip: Chip, needs: BlockNeeds) -> None:
    blocks = blocks_per_multiprocessor(chip, needs)
    assert blocks * needs.warps <= chip.max_warps
    assert blocks * needs.warps * 32 * needs.registers <= REGISTERS
    assert blocks * (needs.shared_bytes + 1024) <= chip.shared_bytes
    assert 0.0 <= occupancy(chip, needs) <= 1.0


@given(ANY_CHIP, NEEDS, st.integers(0, 40), st.integers(0, 30_000))
def test_needing_more_never_fits_more(chip: Chip, needs: BlockNeeds, registers: int, shared: int) -> None:
    more = BlockNeeds(needs.threads, needs.registers + registers, needs.shared_bytes + shared, needs.barriers)
    assert blocks_per_multiprocessor(chip, more) <= blocks_per_multiprocessor(chip, needs)


def test_occupancy_counts_warps_and_a_block_has_limits() -> None:
    # 234 registers, 128 threads: two blocks of four warps in the 64 that sm_90 holds
    assert occupancy(CHIPS["sm_90"], BlockNeeds(128, 234, 49152)) == 2 * 4 / 64
    assert blocks_by_registers(BlockNeeds(32, MAX_REGISTERS_PER_THREAD)) > 0
    assert blocks_by_registers(BlockNeeds(32, MAX_REGISTERS_PER_THREAD + 1)) == 0
    for threads in (0, 1025):
        assert blocks_per_multiprocessor(CHIPS["sm_90"], BlockNeeds(threads, 16)) == 0


LAUNCH = Launch("k", (2, 3, 1), (64, 2, 1), 49152, ("a", "c"))
RESOURCES = Resources("k", 234, 0, 0, 0, 49152, 0, 0.125, 2)


def program(launch: Launch = LAUNCH, resources: Resources = RESOURCES, chip: str = "sm_90") -> KernelCode:
    return KernelCode(chip, "", b"", (launch,), (), (resources,))


def refusal(of: KernelCode) -> str:
    with pytest.raises(CandidateError, match=r"^k: .*: found .*, allowed ") as failure:
        require_launchable(of)
    assert failure.value.stage is Stage.RESOURCES
    return failure.value.reason


def test_within_limits_a_program_passes_also_where_it_spills_and_beyond_it_is_refused() -> None:
    require_launchable(program())
    require_launchable(replace(program(), resources=()))
    spilling = replace(RESOURCES, registers=255, spill_store_bytes=4000, spill_load_bytes=9000)
    assert spilling.spilled_bytes == 13000
    require_launchable(program(resources=spilling))
    ptx = ".extern .shared .align 1024 .b8 d[];\n.shared .align 8 .b8 s[24];"
    assert block_shared_bytes(ptx, 24, 5000) == 1024 + 5000
    assert block_shared_bytes(ptx, 0, 5000) == 5000
    assert block_shared_bytes(".shared .align 8 .b8 s[24];", 24, 5000) == 5024
    full = replace(LAUNCH, dynamic_shared_bytes=232448 - 1024)
    barriers = replace(RESOURCES, static_shared_bytes=24)
    require_launchable(replace(program(full, barriers), text=ptx))
    wider = replace(full, dynamic_shared_bytes=full.dynamic_shared_bytes + 16)
    assert "found 232464" in refusal(replace(program(wider, barriers), text=ptx))
    wide = replace(LAUNCH, block=(512, 1, 1))
    require_launchable(program(wide, replace(RESOURCES, registers=128)))
    reason = refusal(program(wide, replace(RESOURCES, registers=129)))
    assert reason.startswith("k: registers: found 129 for each of 512 threads, allowed 65536 for a block")
    for launch, found in (
        (replace(LAUNCH, block=(1025, 1, 1)), "threads of a block: found 1025, allowed 1024"),
        (replace(LAUNCH, block=(32, 33, 1)), "threads of a block: found 1056, allowed 1024"),
        (replace(LAUNCH, block=(1, 1, 65)), "block z: found 65, allowed 64"),
        (replace(LAUNCH, grid=(1, 65536, 1)), "grid y: found 65536, allowed 65535"),
        (replace(LAUNCH, grid=(2**31, 1, 1)), "grid x: found 2147483648, allowed 2147483647"),
        (replace(LAUNCH, grid=(1, 1, 0)), "grid or block z: found 0, allowed 1 or more"),
    ):
        assert refusal(program(launch)) == f"k: {found}"


@pytest.mark.parametrize(("chip", "most"), [("sm_80", 166912), ("sm_86", 101376), ("sm_90", 232448)])
def test_shared_memory_static_one_included_is_held_to_the_chip(chip: str, most: int) -> None:
    full = replace(LAUNCH, dynamic_shared_bytes=most)
    require_launchable(program(full, chip=chip))
    reason = refusal(program(replace(LAUNCH, dynamic_shared_bytes=most + 1), chip=chip))
    assert reason == f"k: shared bytes: found {most + 1}, allowed {most} on {chip}"
    assert f"found {most + 8}" in refusal(program(full, replace(RESOURCES, static_shared_bytes=8), chip))
