"""Accessors of ``nvgpu.ldmatrix``, which the bindings have none for."""

from tuner.mlir.bindings import Op, ir

TILE = 8  # rows of one tile, each 16 bytes


def tiles_of(load: Op) -> int:
    """Returns ``numTiles``: how many 8x8 tiles of 16-bit elements one op loads (1, 2 or 4)."""
    return int(ir.IntegerAttr(load.attributes["numTiles"]).value)


def is_transposed(load: Op) -> bool:
    """Tells whether the tiles are transposed while they are loaded."""
    return bool(ir.BoolAttr(load.attributes["transpose"]).value)
