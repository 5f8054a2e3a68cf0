"""``tuner.prefetch_fragments``: rotated loops, and what is left."""

import re

from tests.mlir.ops.one_op import apply
from tests.texts import filled

LINE = """%loop = transform.structured.match ops{{["scf.for"]}} in %func
      : (!transform.any_op) -> !transform.any_op
    "tuner.prefetch_fragments"(%loop) {{spread = {0} : i64}} : (!transform.any_op) -> ()"""
A, B = (f"memref<2x16x{columns}xf16, #gpu.address_space<workgroup>>" for columns in (32, 8))
READ_A = "nvgpu.ldmatrix %a[%stage, %row, {0}] {{numTiles = 4 : i32, transpose = false}} : {1} -> {2}"
READ_B = "nvgpu.ldmatrix %b[%stage, %row, {0}] {{numTiles = 2 : i32, transpose = false}} : {1} -> {2}"
WAIT = "nvgpu.device_async_wait %token {numGroups = 0 : i32}"


def payload(steps: int = 1, wait: str = WAIT, other: str = "") -> str:
    """Returns a loop that multiplies ``steps`` fragments of a tile and starts the copies of the next."""
    products, sums = "", "%sum"
    for step in range(steps):
        products += f"""
      %x{step} = {READ_A.format("%c16" if step else "%c0", A, "vector<4x2xf16>")}
      %y{step} = {READ_B.format("%c0", B, "vector<2x2xf16>")}
      %sum{step} = nvgpu.mma.sync(%x{step}, %y{step}, {sums}) {{mmaShape = [16, 8, 16]}}
        : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>"""
        sums = f"%sum{step}"
    return filled(__file__, "LOOP", of_a=A, of_b=B, wait=wait, products=products, other=other, sums=sums)


def of_vectors(text: str) -> str:
    vector = "vector<4xf32>"
    text = re.sub(r"nvgpu.ldmatrix (.*\]) \{.*\} : (.*) -> .*", rf"vector.load \1 : \2, {vector}", text)
    text = re.sub(r"nvgpu.mma.sync\((.*)\) .*\n.*", rf"vector.fma \1 : {vector}", text)
    return text.replace("f16", "f32").replace("], 8 :", "], 4 :").replace("vector<2x2xf32>", vector)


def test_steps_of_few_products_start_copies_after_the_reads_of_the_third() -> None:
    text = apply(LINE.format(0), payload(steps=4))
    before, _, behind = text[text.index("scf.for") :].partition("nvgpu.device_async_copy")
    assert (before.count("nvgpu.ldmatrix"), before.count("nvgpu.mma.sync")) == (4, 1)
    assert "create_group" in behind[: behind.index("nvgpu.mma.sync")]


BECOMES = {  # reads of a tile come before the barrier that ends it: then the tile is overwritten
    "prefetch_fragments_one_step": (LINE.format(0), payload(1)),
    "prefetch_fragments_two_steps": (LINE.format(0), payload(2)),
    "prefetch_fragments_spread": (LINE.format(1), payload(2)),
    "prefetch_fragments_vectors": (LINE.format(0), of_vectors(payload(2))),
}
BRANCH = "%is = arith.constant true\n      scf.if %is { }"
STORE = "%h = arith.constant 0.0 : f16\n      memref.store %h, %from[%row, %k] : memref<16x64xf16>"
UNCHANGED = [
    (LINE.format(0), payload(wait=""), "a loop that waits for nothing"),
    (LINE.format(0), payload(other=BRANCH), "a branch that cannot be moved"),
    (LINE.format(0), payload(other=STORE), "a store that cannot be moved"),
]
