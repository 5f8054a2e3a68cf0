"""Quantized matmuls to test: their arrays, and what compiled code computes of these."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tuner.core.fusions import FUSION_ENTRY
from tuner.core.packings import FusionCode
from tuner.core.processors import missing_on
from tuner.core.quantization import WeightFormat, quantized_text
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.lowering import compile_fusion
from tuner.mlir.cpu.needed_instructions import instructions_needed
from tuner.payload.packed_weights import pack, packed_shape
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments
from tuner.runtime.cpu.memory import placed_empty

HERE = describe_machine()
Array = npt.NDArray[np.generic]
DTYPES = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


@dataclass(frozen=True)
class Case:
    """A quantized matmul, and the attributes of the op that compiles it; {}: scalar loops."""

    sizes: tuple[int, int, int]
    dtype: str
    weights: WeightFormat
    output: str
    knobs: dict[str, int | str]

    @property
    def text(self) -> str:
        return quantized_text(self.sizes, self.dtype, self.weights, self.output)


def script_of(knobs: dict[str, int | str]) -> str:
    """Returns a transform script that applies ``tuner.quantized_matmul`` with attributes."""
    attributes = ", ".join(
        f'{name} = "{given}"' if isinstance(given, str) else f"{name} = {given} : i64"
        for name, given in knobs.items()
    )
    return f"""!op = !transform.any_op
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%root: !op) {{
    %func = transform.structured.match ops{{["func.func"]}} in %root : (!op) -> !op
    "tuner.quantized_matmul"(%func) {{{attributes}}} : (!op) -> ()
    transform.yield
  }}
}}
"""


def arrays_of(case: Case, rng: np.random.Generator) -> tuple[Array, ...]:
    """Returns random A, integers, scales and, where the format has these, zero points."""
    m, n, k = case.sizes
    groups, limit = case.weights.groups(k), 2 ** (case.weights.bits - 1)
    a = rng.standard_normal((m, k)).astype(DTYPES[case.dtype])
    integers = rng.integers(-limit, limit, (n, k)).astype(np.int8)
    scales = rng.uniform(0.001, 0.02, (n, groups)).astype(DTYPES[case.weights.scale_dtype])
    points = (rng.integers(-limit, limit, (n, groups)).astype(np.int8),) * case.weights.has_zero_points
    return (a, integers, scales, *points)


def compiled(case: Case, threads: int = 1, *, emulates: bool = False) -> FusionCode:
    """Returns the code of a case."""
    script = script_of(case.knobs) if case.knobs else None
    with transform.new_context(), ir.Location.unknown():
        return compile_fusion(case.text, script, threads, emulates=emulates)


def multiplied(
    case: Case, arrays: tuple[Array, ...], threads: int = 1, *, emulates: bool = False
) -> npt.NDArray[np.generic]:
    """Returns what the code of a case computes; its threads run one after the other.

    On a processor without the instructions of the code, what vector code computes in place of these.
    """
    code = compiled(case, threads, emulates=emulates)
    if missing_on(HERE, instructions_needed(code.llvm_text)):
        code = compiled(case, threads, emulates=True)
    assert code.is_divided == (threads > 1)
    module = JittedModule(code.llvm_text, (FUSION_ENTRY,))
    call = CompiledFunction(module.addresses[FUSION_ENTRY])
    inputs = []
    for array, packing in zip(arrays, code.packings, strict=True):
        inputs.append(
            placed_empty(packed_shape(array.shape, packing) if packing else array.shape, array.dtype)
        )
        if packing is None:
            inputs[-1][...] = array
        else:
            pack(array, packing, inputs[-1])
    result = placed_empty(case.sizes[:2], DTYPES[case.output])
    result[...] = np.nan
    addresses = [each.ctypes.data for each in (*inputs, result)]
    for thread in range(threads):
        call(PackedArguments(*addresses, *((thread, threads) if threads > 1 else ())))
    return result
