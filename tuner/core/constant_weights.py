"""The payload of a matmul whose B is constant: the text of a fusion, with B as an argument to pack once."""

from dataclasses import dataclass

from tuner.core.dtypes import number_type
from tuner.core.epilogues import EPILOGUES, NONE, Epilogue

CONSTANT_ATTRIBUTE = "tuner.constant"  # of the function


@dataclass(frozen=True)
class ElementTypes:
    """MLIR element types of a matmul: of A and B, of the sums, of C and the epilogue's arguments."""

    inputs: str
    sums: str
    output: str


def constant_text(
    sizes: tuple[int, ...], types: ElementTypes, moved_bytes: int, epilogue: Epilogue = EPILOGUES[NONE]
) -> str:
    """Returns the text of the fusion C = f(A B) with a constant B of k x n elements, which callers pack once.

    ``sizes``: (m, n, k). ``epilogue``: f; those of its arguments that are rows are constant, as B is.
    ``moved_bytes``: the bytes that a call reads and writes, for the attribute ``tuner.bytes``.
    """
    m, n, k = sizes
    source = types.inputs
    sums = types.sums
    output = types.output
    a = f"{m}x{k}x{source}"
    b = f"{k}x{n}x{source}"
    c = f"{m}x{n}x{output}"
    product = f"tensor<{m}x{n}x{sums}>"
    is_integer = not number_type(sums).is_float
    parameters = reads = ""
    inputs = [("%product", product, "(m, n)")]
    for argument in epilogue.arguments:
        shape = f"{'x'.join(map(str, (*argument.shape(m, n), output)))}>"
        value = f"%{argument.name.capitalize()}"
        constant = " {tuner.weight}" if argument.axes == "n" else ""
        parameters += f", %{argument.name}: memref<{shape}{constant}"
        reads += f"    {value} = bufferization.to_tensor %{argument.name} restrict : memref<{shape} to "
        reads += f"tensor<{shape}\n"
        inputs.append((value, f"tensor<{shape}", argument.map_results))
    maps = [f"affine_map<(m, n) -> {results}>" for _, _, results in inputs]
    values, value_types, _ = zip(*inputs, strict=True)
    ins = f"{', '.join(values)} : {', '.join(value_types)}"
    return f"""module {{
  func.func @fusion(%a: memref<{a}>, %b: memref<{b}> {{tuner.weight}}{parameters}, %c: memref<{c}>) \
attributes {{tuner.bytes = {moved_bytes} : i64, {CONSTANT_ATTRIBUTE} = "b", tuner.contractions = 1 : i64, \
tuner.copy = 0 : i64, tuner.loops = array<i64: {m}, {n}>, tuner.transposed = 0 : i64, \
tuner.weights = 1 : i64}} {{
    %A = bufferization.to_tensor %a restrict : memref<{a}> to tensor<{a}>
    %B = bufferization.to_tensor %b restrict : memref<{b}> to tensor<{b}>
{reads}\
    %C = bufferization.to_tensor %c restrict writable : memref<{c}> to tensor<{c}>
    %zero = arith.constant {"0" if is_integer else "0.0"} : {sums}
    %empty = tensor.empty() : {product}
    %cleared = linalg.fill ins(%zero : {sums}) outs(%empty : {product}) -> {product}
    %product = linalg.matmul {{contraction}} ins(%A, %B : tensor<{a}>, tensor<{b}>) \
outs(%cleared : {product}) -> {product}
    %result = linalg.generic {{indexing_maps = [{", ".join([*maps, maps[0]])}], \
iterator_types = ["parallel", "parallel"]}} ins({ins}) outs(%C : tensor<{c}>) attrs = {{root}} {{
    ^bb0(%sum: {sums}, {epilogue.scalar_arguments(output)}%before: {output}):
{_finished(types, epilogue)}\
    }} -> tensor<{c}>
    bufferization.materialize_in_destination %result in restrict writable %c : (tensor<{c}>, \
memref<{c}>) -> ()
    return
  }}
}}
"""


def _finished(types: ElementTypes, epilogue: Epilogue) -> str:
    lines = epilogue.scalar_lines(types.sums, types.output, "")
    return "".join(f"      {line}\n" for line in lines)
