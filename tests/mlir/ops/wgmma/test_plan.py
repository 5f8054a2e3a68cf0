"""The plan of a pipeline, and the layout of its tiles against a model of the TMA and matrix descriptors."""

from dataclasses import replace

import numpy as np
import pytest

from tests.default_suite import ALL
from tuner.gpu.ptxsim.memory.tensor_maps import TensorMap
from tuner.gpu.ptxsim.state.fragments import operand_addresses
from tuner.gpu.wgmma.plan import MMA_DEPTH_BYTES, OperandTile, PipelinePlan


def plan(rows: int = 128, columns: int = 256, stages: int = 4, consumers: int = 2) -> PipelinePlan:
    a, b = OperandTile(rows, 64, 2, is_k_major=True), OperandTile(columns, 64, 2, is_k_major=False)
    return PipelinePlan(a, b, 1000, stages, consumers, "f16")


BOXES_OF_96 = replace(plan(columns=96), stores="tma")


def test_a_plan_counts_what_a_block_needs() -> None:
    found, split = plan(), replace(plan(), k=1024, splits=4)
    boxed, clustered = replace(plan(), stores="tma"), replace(plan(), cluster=(2, 1))
    assert (found.threads, found.k_tiles, found.fragments, found.sums) == (384, 16, 1, 128)
    assert (found.stage_bytes, found.shared_bytes) == (49152, 4 * 49152 + 64)
    assert split.k_tiles == 4  # equal parts of the sum
    # boxes of results lie between the stages and the mbarriers, two for each of eight warps
    assert (boxed.stored_boxes_offset_bytes, boxed.stored_box_bytes) == (4 * 49152, 16 * 128)
    assert boxed.mbarriers_offset_bytes == 4 * 49152 + 2 * 8 * 2048
    assert boxed.shared_bytes == boxed.mbarriers_offset_bytes + 64
    assert found.mbarriers_offset_bytes == 4 * 49152
    assert (clustered.cluster_blocks, clustered.readers) == (2, 4)  # which release every stage
    assert [each.why_not() for each in (found, split, boxed, clustered)] == [None] * 4


def test_registers_move_from_the_producer_only_where_equal_parts_are_too_few() -> None:
    plans = plan(), plan(columns=128), plan(rows=64, consumers=1)
    assert [each.registers for each in plans] == [(40, 232), None, None]


def of_lanes(rows: int = 128, columns: int = 256, consumers: int = 2) -> PipelinePlan:
    """Returns a plan of tf32 whose left operand lanes read into registers."""
    left = OperandTile(rows, 32, 4, is_k_major=False, is_read_by_lanes=True)
    right = OperandTile(columns, 32, 4, is_k_major=True)
    return PipelinePlan(left, right, 1024, 4, consumers, "tf32", is_swapped=True)


def test_lanes_that_read_the_left_operand_hold_two_sets_of_fragments_and_each_warp_releases_a_stage() -> None:
    found = of_lanes()
    assert (found.why_not(), found.readers, found.held) == (None, 8, 128 + 2 * 16)
    assert (found.registers, of_lanes(64, 64, 1).registers) == ((40, 232), None)


def test_three_products_hold_totals_and_three_sets_of_words_and_a_stage_has_two_right_tiles() -> None:
    found = replace(of_lanes(columns=128), products=3)
    assert (found.why_not(), found.held) == (None, 2 * 64 + 3 * 16)
    assert found.right_offset_bytes == 128 * 128
    assert found.stage_bytes == 3 * 128 * 128


def of_planes(rows: int = 128, columns: int = 128) -> PipelinePlan:
    """Returns a plan of f32 by six products of bf16."""
    return replace(plan(rows, columns, stages=2), element="bf16", products=6)


def test_six_products_hold_large_and_small_sums_and_totals_and_a_stage_has_three_tiles_of_each_operand() -> (
    None
):
    found = of_planes()
    assert (found.why_not(), found.held, found.registers) == (None, 3 * 64, (40, 232))
    assert (found.right_offset_bytes, found.stage_bytes) == (3 * 128 * 128, 6 * 128 * 128)


def of_scales(rows: int = 128, columns: int = 128, depth: int = 128, item_bytes: int = 1) -> PipelinePlan:
    """Returns a plan of e4m3 with scales of blocks."""
    left = OperandTile(rows, depth, item_bytes, is_k_major=True)
    right = OperandTile(columns, depth, item_bytes, is_k_major=True)
    return PipelinePlan(left, right, 1024, 4, 2, "e4m3", is_scaled=True)


def test_scaled_sums_hold_totals_as_well() -> None:
    assert (of_scales().why_not(), of_scales().held, of_scales().registers) == (None, 2 * 64, (40, 232))


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (of_planes(columns=192), "consumers: found 288 sums per thread, allowed 192 with 2"),
        (of_scales(depth=256), "scales: found stages of 256 k, allowed 128, of one scale"),
        (of_scales(item_bytes=2), "scales: found another matmul, allowed 8-bit elements with k innermost"),
        (of_scales(columns=256), "consumers: found 256 sums per thread, allowed 192 with 2"),
        (replace(plan(), cluster=(2, 2)), r"cluster: found (2, 2), allowed (1, 1), (2, 1), (1, 2)"),
        (plan(consumers=4, rows=256), "consumers: found 4, allowed 1, 2, 3"),
        (replace(plan(), splits=0), "splits: found 0 of 1000 elements, allowed equal parts of whole tiles"),
        (replace(plan(), splits=2), "splits: found 2 of 1000 elements, allowed equal parts of whole tiles"),
        (replace(plan(), k=1024, splits=2, stores="tma"), "splits: found results stored by tma, allowed"),
        (replace(plan(), stores="tensor"), "stores: found 'tensor', allowed direct, tma"),
        (BOXES_OF_96, "stores: found tma for 96 columns of C, allowed multiples of 64"),
        (plan(columns=320), "B: found 320 columns of C, allowed 256"),
        (plan(rows=128, consumers=1), "consumers: found 256 sums per thread, allowed 192 with 1"),
        (plan(rows=192, consumers=3), "consumers: found 128 sums per thread, allowed 80 with 3"),
        (plan(rows=192, columns=64), "A: found 192 rows, allowed multiples of 128"),
        (replace(of_lanes(), products=3), "consumers: found 304 sums and fragments per thread, allowed 192"),
        (replace(plan(), products=3), "products: found 3, allowed 1, 6, and 3 where lanes read one operand"),
        (replace(of_lanes(), products=2), "products: found 2, allowed 1, 6, and 3 where lanes read"),
        (replace(plan(), is_swapped=True, stores="tma"), "stores: found tma of operands that change places"),
        (of_lanes(columns=320), "A: found 320 rows of C, allowed 256"),
        (of_lanes(rows=192), "B: found 192 rows, allowed multiples of 128"),
        (of_lanes(rows=256), "consumers: found 320 sums and fragments per thread, allowed 192 with 2"),
        (of_lanes(rows=192, columns=128, consumers=3), "consumers: found 96 sums and fragments per thread"),
    ],
)
def test_what_cannot_be_built_reports_why(broken: PipelinePlan, reason: str) -> None:
    assert str(broken.why_not()).startswith(reason)


# The layout arithmetic against a model: what the TMA writes and what a matrix descriptor selects.
START = 4096  # of the tile in shared memory
TILES = (
    (OperandTile(64, 64, 2, is_k_major=True), 64),
    (OperandTile(192, 128, 2, is_k_major=True), 192),
    (OperandTile(256, 64, 4, is_k_major=True), 64),
    (OperandTile(128, 64, 2, is_k_major=False), 64),
    (OperandTile(256, 128, 2, is_k_major=False), 256),
    (OperandTile(192, 64, 2, is_k_major=False), 64),
)


@pytest.mark.parametrize(("tile", "rows_of_one"), TILES, ids=str)
def test_a_descriptor_selects_what_the_copies_brought(tile: OperandTile, rows_of_one: int) -> None:
    kind = np.dtype(f"u{tile.item_bytes}")
    matrix = np.arange(tile.rows * tile.depth, dtype=kind).reshape(tile.rows, tile.depth)
    tensor = TensorMap(matrix if tile.is_k_major else np.ascontiguousarray(matrix.T), tile.box)
    copied = np.zeros(START + tile.bytes, np.uint8)
    for box in tile.boxes:
        at = (box.k, box.row) if tile.is_k_major else (box.row, box.k)
        copied[tensor.shared_addresses(START + box.offset_bytes)] = tensor.content(at)
    shared = copied.view(kind)
    depth = MMA_DEPTH_BYTES // tile.item_bytes
    for row in range(0, tile.rows, rows_of_one):
        for step in range(tile.steps):
            descriptor = tile.descriptor + (START + tile.offset_bytes(row, step) >> 4)
            shape = (rows_of_one, depth, tile.item_bytes)
            addresses = operand_addresses(descriptor, *shape, not tile.is_k_major)
            expected = matrix[row : row + rows_of_one, step * depth : (step + 1) * depth]
            np.testing.assert_array_equal(shared[addresses // tile.item_bytes], expected)


def test_copies_and_their_parts_fill_a_tile_without_gaps() -> None:
    parts = OperandTile(64, 128, 2, is_k_major=True, sharing_blocks=2), OperandTile(128, 64, 2, False, 2)
    for tile in (*(each for each, _ in TILES), *parts):
        assert tile.block_bytes == tile.box[0] * tile.box[1] * tile.item_bytes
        offsets = [part * tile.block_bytes for part in range(tile.sharing_blocks)]
        starts = [box.offset_bytes + offset for box in tile.boxes for offset in offsets]
        assert starts == list(range(0, tile.bytes, tile.block_bytes))


@pytest.mark.parametrize(
    ("tile", "reason"),
    [
        (OperandTile(64, 32, 2, is_k_major=True), "B: found 64 x 32, allowed whole lines of 128 bytes"),
        (OperandTile(96, 64, 2, is_k_major=False), "B: found 96 x 64, allowed whole lines"),
        (OperandTile(320, 64, 2, is_k_major=True), "B: found 320 rows, allowed multiples of 8 up to 256"),
        (OperandTile(60, 64, 2, is_k_major=True), "B: found 1 parts of 60 lines, allowed multiples of 8"),
        (OperandTile(72, 64, 2, is_k_major=True, sharing_blocks=2), "B: found 2 parts of 36 lines, allowed"),
        (OperandTile(64, 64, 4, False, is_read_by_lanes=True), "B: found 64 k of 4-byte elements read by"),
        (OperandTile(64, 64, 2, True, is_read_by_lanes=True), "B: found 64 k of 2-byte elements read by"),
    ],
)
def test_a_tile_that_cannot_be_multiplied_reports_why(tile: OperandTile, reason: str) -> None:
    assert str(tile.why_not("B", 8)).startswith(reason)
