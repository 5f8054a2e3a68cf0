"""The layout arithmetic against a model: what the TMA writes and what a matrix descriptor selects."""

import numpy as np
import pytest

from tuner.mlir.wgmma.plan import MMA_DEPTH_BYTES, OperandTile
from tuner.simulator.memory.async_copies import TensorMap
from tuner.simulator.state.fragments import operand_addresses

START = 4096  # of the tile in shared memory
TILES = (
    (OperandTile(64, 64, 2, is_k_major=True), 64),
    (OperandTile(192, 128, 2, is_k_major=True), 192),
    (OperandTile(256, 64, 4, is_k_major=True), 64),
    (OperandTile(128, 64, 2, is_k_major=False), 64),
    (OperandTile(256, 128, 2, is_k_major=False), 256),
    (OperandTile(192, 64, 2, is_k_major=False), 64),
)


def filled(tile: OperandTile, matrix: "np.ndarray[tuple[int, int], np.dtype[np.unsignedinteger]]") -> bytes:
    """Returns shared memory after the tile's copies; ``matrix`` is stored as the operand is."""
    shared = np.zeros(START + tile.bytes, np.uint8)
    tensor = TensorMap(matrix, tile.box)
    for box in tile.boxes:
        at = (box.k, box.row) if tile.is_k_major else (box.row, box.k)
        shared[tensor.shared_addresses(START + box.offset_bytes)] = tensor.content(at)
    return shared.tobytes()


@pytest.mark.parametrize(("tile", "rows_of_one"), TILES, ids=str)
def test_a_descriptor_selects_what_the_copies_brought(tile: OperandTile, rows_of_one: int) -> None:
    kind = np.dtype(f"u{tile.item_bytes}")
    matrix = np.arange(tile.rows * tile.depth, dtype=kind).reshape(tile.rows, tile.depth)
    stored = matrix if tile.is_k_major else np.ascontiguousarray(matrix.T)
    shared = np.frombuffer(filled(tile, stored), kind)
    depth = MMA_DEPTH_BYTES // tile.item_bytes
    for row in range(0, tile.rows, rows_of_one):
        for step in range(tile.steps):
            descriptor = tile.descriptor + (START + tile.offset_bytes(row, step) >> 4)
            addresses = operand_addresses(
                descriptor, rows_of_one, depth, tile.item_bytes, not tile.is_k_major
            )
            expected = matrix[row : row + rows_of_one, step * depth : (step + 1) * depth]
            np.testing.assert_array_equal(shared[addresses // tile.item_bytes], expected)


def test_copies_fill_a_tile_without_gaps() -> None:
    for tile, _ in TILES:
        size = tile.box[0] * tile.box[1] * tile.item_bytes
        assert [box.offset_bytes for box in tile.boxes] == list(range(0, tile.bytes, size))


def test_copies_of_parts_fill_a_tile_without_gaps() -> None:
    for tile in (OperandTile(64, 128, 2, is_k_major=True, parts=2), OperandTile(128, 64, 2, False, 2)):
        starts = [
            box.offset_bytes + part * tile.part_bytes for box in tile.boxes for part in range(tile.parts)
        ]
        assert starts == list(range(0, tile.bytes, tile.part_bytes))
        assert tile.part_bytes == tile.box[0] * tile.box[1] * tile.item_bytes


@pytest.mark.parametrize(
    ("tile", "reason"),
    [
        (OperandTile(64, 32, 2, is_k_major=True), "B: found 64 x 32, allowed whole lines of 128 bytes"),
        (OperandTile(96, 64, 2, is_k_major=False), "B: found 96 x 64, allowed whole lines"),
        (OperandTile(320, 64, 2, is_k_major=True), "B: found 320 rows, allowed multiples of 8 up to 256"),
        (OperandTile(60, 64, 2, is_k_major=True), "B: found 1 parts of 60 lines, allowed multiples of 8"),
        (OperandTile(72, 64, 2, is_k_major=True, parts=2), "B: found 2 parts of 36 lines, allowed"),
        (OperandTile(64, 32, 4, is_k_major=False), "B: found 4-byte elements with k not innermost"),
    ],
)
def test_a_tile_that_cannot_be_multiplied_reports_why(tile: OperandTile, reason: str) -> None:
    found = tile.why_not("B", 8)
    assert found is not None
    assert found.startswith(reason)
