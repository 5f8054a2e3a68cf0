"""``tuner.element_types``, ``tuner.use_fp8``, ``tuner.use_tf32``: types change, or are refused."""

from tests.texts import filled, text_beside
from tuner.core.matmul import Matmul
from tuner.gpu.payload.gpu import gpu_payload_mlir
from tuner.gpu.payload.scratch import Scratch

LINE = '"tuner.element_types"(%func) {{from = "{0}", to = "{1}"}} : (!transform.any_op) -> ()'
PAYLOAD = text_beside(__file__, "PAYLOAD")


def with_line(line: str) -> str:
    return PAYLOAD.replace("    return", f"    {line}\n    return")


NUMBERS = ("1.0 : f8E5M2", "dense<1.0> : vector<2xf8E5M2>", "dense<[0.0, 1.0]> : vector<2xf8E5M2>")
# ``tuner.use_fp8``: products of bytes become inline PTX of 8-bit floats.
USE_FP8 = '"tuner.use_fp8"(%func) {{kind = "{0}"}} : (!transform.any_op) -> ()'


def product(a: str = "4x4xi8", b: str = "2x4xi8", shape: str = "16, 8, 32", c: str = "f32") -> str:
    return filled(__file__, "PRODUCT", a=a, b=b, shape=shape, c=c)


# ``tuner.use_tf32``: products of f32 are marked.
USE_TF32 = '"tuner.use_tf32"(%func) : (!transform.any_op) -> ()'
TO_F16, TO_I8, OF_E4M3 = LINE.format("bf16", "f16"), LINE.format("f8E5M2", "i8"), USE_FP8.format("e4m3")
BECOMES = {
    "element_types": (TO_F16, PAYLOAD),
    "element_types_i8": (LINE.format("f8E4M3FN", "i8"), PAYLOAD.replace("bf16", "f8E4M3FN")),
    "use_fp8": (OF_E4M3, product()),
    "use_fp8_e5m2": (USE_FP8.format("e5m2"), product()),
    "use_tf32": (USE_TF32, product("4x1xf32", "2x1xf32", "16, 8, 8")),
}
WHOLE = gpu_payload_mlir(Matmul(16, 16, 16, "bf16"), Scratch()).replace("@matmul", "@f")
UNCHANGED = [(f"{TO_F16}\n    {LINE.format('f16', 'bf16')}", WHOLE, "there and back")]
NO_BYTES = r"found no nvgpu\.mma\.sync of i8 fragments and f32 sums"
HALVES = ("4x2xf16", "2x2xf16", "16, 8, 16")
SMALL = product("2x4xi8", "1x4xi8", "16, 8, 16")
COMPUTES = with_line("%s = arith.addf %zero, %zero : bf16")
OF_ONE = [with_line(f"%one = arith.constant {each}").replace("bf16", "f8E5M2") for each in NUMBERS]
REFUSED = [
    (LINE.format("bf16", "f32"), PAYLOAD, "found bf16 to f32, allowed types of one width"),
    (TO_F16, COMPUTES, r"found arith\.addf on bf16, allowed moves and products"),
    *((TO_I8, text, "found a number of f8E5M2, allowed zeros to become i8") for text in OF_ONE),
    (USE_FP8.format("e3m4"), product(), "kind: found 'e3m4', allowed e4m3, e5m2"),
    (OF_E4M3, product(*HALVES), NO_BYTES),
    (OF_E4M3, product(c="i32"), NO_BYTES),
    (OF_E4M3, SMALL, r"of \(2, 1, 4\) registers, allowed \(4, 2, 4\)"),
    (USE_TF32, product(*HALVES), r"found no nvgpu\.mma\.sync of f32 operands"),
]
