"""Reads the attributes of ``nvgpu.ldmatrix``."""

from typing import Any

from tuner.mlir.bindings import ir

TILE = 8  # rows of one tile, each 16 bytes


def tiles_of(load: Any) -> int:
    """Returns how many 8x8 tiles of 16-bit elements one op loads: 1, 2 or 4."""
    return int(ir.IntegerAttr(load.attributes["numTiles"]).value)


def is_transposed(load: Any) -> bool:
    """Tells whether the tiles are transposed on the way to registers."""
    return bool(ir.BoolAttr(load.attributes["transpose"]).value)
