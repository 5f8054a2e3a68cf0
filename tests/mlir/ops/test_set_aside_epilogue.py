"""``tuner.set_aside_epilogue``: a scalar function from what follows a matmul."""

import re

from tuner.core.matmul import Matmul
from tuner.gpu.payload.gpu import gpu_payload_mlir
from tuner.gpu.payload.scratch import Scratch

LINE = '"tuner.set_aside_epilogue"(%func) : (!transform.any_op) -> ()'
PADDED = '"tuner.pad_views"(%func) {sizes = array<i64: 16, 32, 8>} : (!transform.any_op) -> ()\n    ' + LINE


def payload(dtype: str, epilogue: str, output: str = "") -> str:
    problem = Matmul(15, 30, 7, dtype, epilogue=epilogue, output=output)
    return gpu_payload_mlir(problem, Scratch()).replace("@matmul(", "@f(")


COMPUTED = re.sub(r"%BIAS = .*", "%BIAS = tensor.empty() : tensor<30xf32>", payload("f32", "bias_relu"))
UNCLEARED = payload("f16", "bias_relu").replace("outs(%cleared", "outs(%between")
SHOWN = [(LINE, payload("f16", "bias_relu"))]
CASES = (("f16", "bias_relu", ""), ("bf16", "bias_relu", "bf16"), ("f16", "none", "f16"))
BECOMES = {
    f"set_aside_epilogue_{dtype}_{epilogue}_{output or 'f32'}": (PADDED, payload(dtype, epilogue, output))
    for dtype, epilogue, output in CASES
}
REFUSED = [
    (LINE, payload("f16", "none"), r"found no elementwise linalg\.generic that consumes another"),
    (LINE, COMPUTED, "an operand is computed before the epilogue; operands must be arguments"),
    (LINE, UNCLEARED, r"the product does not start from a linalg\.fill"),
]
