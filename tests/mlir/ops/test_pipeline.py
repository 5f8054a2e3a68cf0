"""``tuner.wgmma_pipeline``: what becomes of a launch with a matmul, and what it refuses."""

from tests.mlir.ops.one_op import line_of
from tests.texts import filled

ROWS = "affine_map<(d0, d1, d2) -> (d0, d2)>"
COLUMNS = {"nn": "affine_map<(d0, d1, d2) -> (d2, d1)>", "nt": "affine_map<(d0, d1, d2) -> (d1, d2)>"}
PRODUCT = "linalg.matmul indexing_maps = [{maps}] ins(%x, %y : {a}, {b}) outs(%z : {c})"
ANY = "%any = memref.dim %c, %c1 : memref<64x128xf32>\n    %c2 = arith.addi %any, %any : index"
FILL = "linalg.fill ins(%zero : f32) outs(%z : {c})"
PART_OF_C = "memref<64x64xf32, strided<[128, 1]"


def line(stores: str = "direct", **knobs: int) -> str:
    sizes = {"block_k": 64, "stages": 2, "consumers": 1, "tiles": 1} | knobs
    return line_of("wgmma_pipeline", stores=stores, **sizes)


def payload(dtype: str = "f16", layout: str = "nn", k: int = 192, body: str = "") -> str:
    m, n = 64, 64
    rows, columns = (k, 2 * n) if layout == "nn" else (2 * n, k)
    a, c = f"memref<{m}x{k}x{dtype}>", f"memref<{m}x{n}xf32, strided<[{2 * n}, 1], offset: ?>>"
    sizes, offsets = (f"{k}, {n}", "0, %j") if layout == "nn" else (f"{n}, {k}", "%j, 0")
    b = f"memref<{sizes.replace(', ', 'x')}x{dtype}, strided<[{columns}, 1], offset: ?>>"
    maps = f"{ROWS}, {COLUMNS[layout]}, affine_map<(d0, d1, d2) -> (d0, d1)>"
    body = (body or FILL + "\n      " + PRODUCT).format(a=a, b=b, c=c, maps=maps)
    whole = {"rows": rows, "columns": columns, "dtype": dtype, "m": m, "n2": 2 * n, "n": n}
    return filled(__file__, "LAUNCH", **whole, a=a, b=b, c=c, offsets=offsets, sizes=sizes, body=body)


def with_epilogue(text: str, result: str) -> str:
    return text.rstrip().removesuffix("}") + filled(__file__, "EPILOGUE", result=result) + "}\n"


MADE = "%made = memref.alloc() : memref<64x192xf16>\n      linalg.fill"
COPIED = payload().replace(" ins(%x,", " ins(%made,").replace("linalg.fill", MADE)
BECOMES = {
    "wgmma_pipeline_f16_nn": (line(), payload()),
    "wgmma_pipeline_boxes": (line(stores="tma"), with_epilogue(payload(), "f16")),  # of shared memory
    "wgmma_pipeline_tiles": (line(tiles=2, block_k=32), payload("f32", "nt", k=32)),
    "wgmma_pipeline_registers": (line(block_k=32), payload("f32", k=96)),  # B is the left operand
}
OF_GRID = payload().replace("affine.apply affine_map<(d0) -> (d0 * 64)>(%bx)", "gpu.grid_dim x")
ANY_GRID = payload().replace("%gx = %c2", "%gx = %any").replace("%c2 = arith.constant 2 : index", ANY)
WIDE_ROWS = payload().replace("memref<64x128xf32>", "memref<64x128xf32, strided<[132, 1]>>")  # of C
WIDE_ROWS = with_epilogue(WIDE_ROWS.replace(PART_OF_C, PART_OF_C.replace("128", "132")), "f16")
REFUSED = [
    (line(), payload(body=PRODUCT), "found 1 linalg.matmul and 0 linalg.fill, allowed one of each"),
    (line(), payload("f64"), "found elements f64 summed in f32, allowed bf16, .* summed in f32, i8 in i32"),
    (line(), payload(k=100), "A: found rows of 200 bytes, allowed multiples of 16"),
    (line(block_k=64), payload("f32", k=64), "B: found 64 k of 4-byte elements read by lanes, allowed 32"),
    (line(block_k=32, products=3), payload("f32", k=64), "no argument with tuner.buffer = 'low_a'"),
    (line(products=6), payload("f32", k=64), "no argument with tuner.buffer = 'high_a'"),
    (line(block_k=128), payload("i8", k=128), "found elements i8 summed in f32, allowed bf16"),
    (line(block_k=32, consumers=3), payload("f32", k=64), "found 3, allowed some that divide 64 columns"),
    (line(consumers=3), payload(), "consumers: found 3, allowed some that divide 64 rows"),
    (line(tiles=0), payload(), "tiles: found 0, allowed 1 or more"),
    (line(tiles=2), payload().replace("(%bx)", "(%tx)"), "found a corner computed by an argument of the"),
    (line(tiles=2), OF_GRID, "found a corner computed by gpu.grid_dim, allowed arithmetic of block ids"),
    (line(tiles=2), ANY_GRID, "tiles: found a grid of None, allowed constant sizes of whole clusters"),
    (line(stores="tma"), payload(), "stores: found tma for sums, allowed an epilogue to f16 or bf16"),
    (line(stores="tma"), with_epilogue(payload(), "f8E5M2"), "found tma for f8E5M2, allowed an epilog"),
    (line(stores="tma"), WIDE_ROWS, "stores: found tma for rows of 264 bytes, allowed multiples of 16"),
    (line(stages=1), payload(), "stages: found 1, allowed 2 or more"),
    (line(block_k=32), payload(), "A: found 64 x 32, allowed whole lines of 128 bytes"),
    (line(), "func.func @f() { return }", "no gpu.launch with a linalg.matmul"),
    (line(), COPIED, "found operands computed before, allowed subviews of arguments"),
]
