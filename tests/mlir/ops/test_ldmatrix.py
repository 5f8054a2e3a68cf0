"""``tuner.fix_transposed_a`` and ``tuner.merge_ldmatrix``: which loads change, which stay."""

import pytest

from tests.mlir.ops.one_op import apply
from tests.texts import filled, text_beside

FIX_TRANSPOSED_A = '"tuner.fix_transposed_a"(%func) : (!transform.any_op) -> ()'


def loads_of_a(tiles: int, transpose: str) -> str:
    return text_beside(__file__, "PAYLOAD").replace("TILES", str(tiles)).replace("TRANSPOSE", transpose)


# ``tuner.merge_ldmatrix``: pairs of loads become one, others stay.
MERGE_LDMATRIX = '"tuner.merge_ldmatrix"(%func) : (!transform.any_op) -> ()'


def loads_of_b(offsets: tuple[int, ...], transpose: str, dtype: str = "f16") -> str:
    tile = f"memref<64x64x{dtype}, #gpu.address_space<workgroup>>"
    vector = "vector<2x2xf16>" if dtype == "f16" else "vector<2x1xf32>"
    lines = []
    for number, offset in enumerate(offsets):
        at = f"affine.apply affine_map<()[s0] -> (s0 mod 8 + {offset})>()[%lane]"
        indices = "%row, %n{0}" if transpose == "true" else "%n{0}, %row"
        lines.append(
            f"%n{number} = {at}\n%b{number} = nvgpu.ldmatrix %tile[{indices.format(number)}]"
            f" {{numTiles = 2 : i32, transpose = {transpose}}} : {tile} -> {vector}\n"
            f"memref.store %b{number}, %c[%i] : memref<64x{vector}>"
        )
    return filled(__file__, "LOADS_OF_B", vector=vector, tile=tile, body="\n".join(lines))


@pytest.mark.parametrize("offsets", [(0, 8, 16, 24), (0, 8, 16)])
def test_each_load_is_merged_at_most_once(offsets: tuple[int, ...]) -> None:
    assert apply(MERGE_LDMATRIX, loads_of_b(offsets, "true")).count("nvgpu.ldmatrix") == 2


BECOMES = {
    "fix_transposed_a": (FIX_TRANSPOSED_A, loads_of_a(4, "true")),
    "merge_ldmatrix_rows_of_k": (MERGE_LDMATRIX, loads_of_b((0, 8), "true", "f16")),
    "merge_ldmatrix_rows_of_n": (MERGE_LDMATRIX, loads_of_b((0, 8), "false", "f16")),
    "merge_ldmatrix_rows_of_n_tf32": (MERGE_LDMATRIX, loads_of_b((0, 8), "false", "f32")),
}
APART = ((0, 16), (0, 4), (8, 0), (0,))
UNCHANGED = [
    (FIX_TRANSPOSED_A, loads_of_a(4, "false"), "not transposed"),
    (FIX_TRANSPOSED_A, loads_of_a(2, "true"), "two tiles"),
    *((MERGE_LDMATRIX, loads_of_b(each, "true"), f"loads at columns {each}") for each in APART),
]
