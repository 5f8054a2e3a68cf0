"""Accessors of ``nvgpu.ldmatrix`` that the bindings lack."""

from tuner.mlir.bindings import Op, ir

TILE = 8  # rows of one tile, 16 bytes each


def tiles_of(load: Op) -> int:
    """Returns how many 8x8 tiles of 16-bit elements an ``nvgpu.ldmatrix`` loads: 1, 2 or 4."""
    return int(ir.IntegerAttr(load.attributes["numTiles"]).value)


def is_transposed(load: Op) -> bool:
    """Returns whether an ``nvgpu.ldmatrix`` transposes the tiles that it loads."""
    return bool(ir.BoolAttr(load.attributes["transpose"]).value)
