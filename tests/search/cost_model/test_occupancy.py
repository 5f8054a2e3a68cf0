"""Occupancy against 420 answers of NVIDIA's own calculator.

``occupancy_reference.csv`` was written by a program around ``cuda_occupancy.h`` of CUDA 13.0
(``cudaOccMaxActiveBlocksPerMultiprocessor``, carve-out "max shared", 1 KiB reserved for each block).
"""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.gpu import CHIPS, MAX_REGISTERS_PER_THREAD, REGISTERS, Chip
from tuner.search.cost_model.occupancy import (
    BlockNeeds,
    blocks_by_registers,
    blocks_per_multiprocessor,
    occupancy,
)

REFERENCE = Path(__file__).parent / "occupancy_reference.csv"
ROWS = list(csv.DictReader(REFERENCE.read_text().splitlines()))
NEEDS = st.builds(
    BlockNeeds, st.integers(1, 1024), st.integers(0, 255), st.integers(0, 227 * 1024), st.integers(0, 16)
)
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


def test_occupancy_counts_warps() -> None:
    # 234 registers, 128 threads: two blocks of four warps in the 64 that sm_90 holds
    assert occupancy(CHIPS["sm_90"], BlockNeeds(128, 234, 49152)) == 2 * 4 / 64


def test_a_thread_has_at_most_255_registers() -> None:
    assert blocks_by_registers(BlockNeeds(32, MAX_REGISTERS_PER_THREAD)) > 0
    assert blocks_by_registers(BlockNeeds(32, MAX_REGISTERS_PER_THREAD + 1)) == 0


@pytest.mark.parametrize("threads", [0, 1025])
def test_a_block_of_no_or_too_many_threads_does_not_fit(threads: int) -> None:
    assert blocks_per_multiprocessor(CHIPS["sm_90"], BlockNeeds(threads, 16)) == 0
