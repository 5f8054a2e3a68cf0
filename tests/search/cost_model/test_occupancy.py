"""Occupancy against 420 answers of NVIDIA's own calculator.

``occupancy_reference.csv`` was written by a program around ``cuda_occupancy.h`` of CUDA 13.0
(``cudaOccMaxActiveBlocksPerMultiprocessor``, carve-out "max shared", 1 KiB reserved for each block).
"""

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu import CHIPS, MAX_REGISTERS_PER_THREAD, REGISTERS, Chip
from tuner.core.gpu_code import KernelProgram, Launch, Resources
from tuner.search.cost_model.occupancy import (
    BlockNeeds,
    block_shared_bytes,
    blocks_by_registers,
    blocks_per_multiprocessor,
    occupancy,
    require_launchable,
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


LAUNCH = Launch("k", (2, 3, 1), (64, 2, 1), 49152, ("a", "c"))


RESOURCES = Resources("k", 234, 0, 0, 0, 49152, 0, 0.125, 2)


def program(
    launch: Launch = LAUNCH, resources: Resources | None = RESOURCES, chip: str = "sm_90"
) -> KernelProgram:
    return KernelProgram(chip, "", b"", (launch,), (), () if resources is None else (resources,))


def refusal(of: KernelProgram) -> str:
    with pytest.raises(CandidateError, match=r"^k: .*: found .*, allowed ") as failure:
        require_launchable(of)
    assert failure.value.stage is Stage.RESOURCES
    return failure.value.reason


def test_a_program_within_all_limits_passes() -> None:
    require_launchable(program())
    require_launchable(program(resources=None))


@pytest.mark.parametrize(("chip", "most"), [("sm_80", 166912), ("sm_86", 101376), ("sm_90", 232448)])
def test_shared_memory_is_held_to_the_chip(chip: str, most: int) -> None:
    require_launchable(program(replace(LAUNCH, dynamic_shared_bytes=most), chip=chip))
    reason = refusal(program(replace(LAUNCH, dynamic_shared_bytes=most + 1), chip=chip))
    assert reason == f"k: shared bytes: found {most + 1}, allowed {most} on {chip}"


def test_static_shared_memory_counts() -> None:
    full = replace(LAUNCH, dynamic_shared_bytes=232448)
    assert "found 232456" in refusal(program(full, replace(RESOURCES, static_shared_bytes=8)))


def test_dynamic_memory_starts_after_static_memory_at_its_alignment() -> None:
    ptx = ".extern .shared .align 1024 .b8 d[];\n.shared .align 8 .b8 s[24];"
    assert block_shared_bytes(ptx, 24, 5000) == 1024 + 5000
    assert block_shared_bytes(ptx, 0, 5000) == 5000
    assert block_shared_bytes(".shared .align 8 .b8 s[24];", 24, 5000) == 5024
    full = replace(LAUNCH, dynamic_shared_bytes=232448 - 1024)
    barriers = replace(RESOURCES, static_shared_bytes=24)
    require_launchable(replace(program(full, barriers), ptx=ptx))
    wider = replace(full, dynamic_shared_bytes=full.dynamic_shared_bytes + 16)
    assert "found 232464" in refusal(replace(program(wider, barriers), ptx=ptx))


def test_registers_of_all_threads_must_fit() -> None:
    wide = replace(LAUNCH, block=(512, 1, 1))
    require_launchable(program(wide, replace(RESOURCES, registers=128)))
    reason = refusal(program(wide, replace(RESOURCES, registers=129)))
    assert reason.startswith("k: registers: found 129 for each of 512 threads, allowed 65536 for a block")


def test_what_spills_can_be_launched() -> None:
    spilling = replace(RESOURCES, registers=255, spill_store_bytes=4000, spill_load_bytes=9000)
    assert spilling.spilled_bytes == 13000
    require_launchable(program(resources=spilling))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"block": (1025, 1, 1)}, "threads of a block: found 1025, allowed 1024"),
        ({"block": (32, 33, 1)}, "threads of a block: found 1056, allowed 1024"),
        ({"block": (1, 1, 65)}, "block z: found 65, allowed 64"),
        ({"grid": (1, 65536, 1)}, "grid y: found 65536, allowed 65535"),
        ({"grid": (2**31, 1, 1)}, "grid x: found 2147483648, allowed 2147483647"),
        ({"grid": (1, 1, 0)}, "grid or block z: found 0, allowed 1 or more"),
    ],
)
def test_a_geometry_that_cannot_be_launched_is_refused(
    change: dict[str, tuple[int, int, int]], found: str
) -> None:
    assert refusal(program(replace(LAUNCH, **change))) == f"k: {found}"  # type: ignore[arg-type]
