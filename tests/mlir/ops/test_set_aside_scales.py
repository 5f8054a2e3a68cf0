"""``tuner.set_aside_scales``: a matmul without scales, and marks on the arguments that have them."""

from tuner.core.matmul import Matmul
from tuner.core.problem import SCALES
from tuner.gpu.payload.gpu import gpu_payload_mlir
from tuner.gpu.payload.scratch import Scratch

MATCH = '%sums = transform.structured.match ops{["linalg.generic"]} in %func'
MATCH += " : (!transform.any_op) -> !transform.any_op"
LINE = f'{MATCH}\n    "tuner.set_aside_scales"(%sums) : (!transform.any_op) -> ()'
PAYLOAD = gpu_payload_mlir(Matmul(64, 128, 160, "e4m3", "nt", scales=SCALES), Scratch())
PAYLOAD = PAYLOAD.replace("@matmul(", "@f(")
READ = "bufferization.to_tensor %scale_a restrict : memref<64x2xf32> to"
COMPUTED = PAYLOAD.replace(READ, "tensor.empty() :")
BY_ROWS = PAYLOAD.replace("(m, n, k) -> (m, k floordiv 128)", "(m, n, k) -> (m, k floordiv 80)")
UNSCALED = PAYLOAD.replace("arith.mulf %xy, %scale", "arith.mulf %xy, %xy")
WITH_SUM = PAYLOAD.replace("arith.addf %sum, %scaled", "arith.addf %scaled, %scaled")
MULTIPLIED = PAYLOAD.replace("arith.addf %sum, %scaled", "arith.mulf %sum, %scaled")
EXCHANGED = PAYLOAD.replace("arith.addf %sum, %scaled", "arith.addf %scaled, %sum")
BECOMES = {"set_aside_scales": (LINE, PAYLOAD), "set_aside_scales_exchanged": (LINE, EXCHANGED)}
ANOTHER = r"found another linalg\.generic, allowed a linalg\.generic that adds up scaled products"
REFUSED = [
    (LINE, COMPUTED, "scales of a: found a tensor that is computed, allowed an argument"),
    (LINE, BY_ROWS, ANOTHER),
    (LINE, UNSCALED, f"{ANOTHER}(?# without scales)"),
    (LINE, WITH_SUM, f"{ANOTHER}(?# the sum is left out)"),
    (LINE, MULTIPLIED, f"{ANOTHER}(?# no sum)"),
]
