"""``tuner.widen_operands``: matmuls read f32, every element is converted exactly, and what is refused."""

import re

import pytest

from tests.mlir.ops.one_op import apply, line_of


def line(**attributes: int) -> str:
    return line_of("widen_operands", lanes=16, **attributes)


def payload(element: str = "f16", m: int = 8, n: int = 16, k: int = 32, sums: str = "f32") -> str:
    a, b, c = (f"{rows}x{columns}x" for rows, columns in ((m, k), (k, n), (m, n)))
    result = f"%r in restrict writable %c : (tensor<{c}{sums}>, memref<{c}{sums}>) -> ()"
    return f"""func.func @f(%a: memref<{a}{element}>, %b: memref<{b}{element}>, %c: memref<{c}{sums}>) {{
  %A = bufferization.to_tensor %a restrict : memref<{a}{element}> to tensor<{a}{element}>
  %B = bufferization.to_tensor %b restrict : memref<{b}{element}> to tensor<{b}{element}>
  %C = bufferization.to_tensor %c restrict writable : memref<{c}{sums}> to tensor<{c}{sums}>
  %r = linalg.matmul ins(%A, %B : tensor<{a}{element}>, tensor<{b}{element}>) outs(%C : tensor<{c}{sums}>)
    -> tensor<{c}{sums}>
  bufferization.materialize_in_destination {result}
  return
}}"""


COMPUTED = payload().replace(
    "%A = bufferization.to_tensor %a restrict : memref<8x32xf16> to tensor<8x32xf16>",
    "%A = tensor.empty() : tensor<8x32xf16>",
)


@pytest.mark.parametrize(("b", "types"), [(0, ("f32", "f16")), (1, ("f32", "f32"))])
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_only_the_named_operands_become_f32(b: int, types: tuple[str, str], element: str) -> None:
    text = apply(line(b=b), payload(element))
    expected = [name.replace("f16", element) for name in types]
    assert re.findall(r"linalg\.matmul ins\(.*: tensor<8x32x(\w+)>, tensor<32x16x(\w+)>", text) == [
        (*expected,)
    ]
    assert text.count("memref.alloc") == 1 + b


def test_of_a_ragged_row_the_last_elements_are_converted_one_by_one() -> None:
    text = apply(line(b=0), payload(k=35))
    assert "vector<16xf16>" in text
    assert "arith.extf %" in text
    assert re.search(r"memref\.load %\w+\[.*\] : memref<8x35xf16>", text)
    assert "vector.load" not in apply(line(b=0), payload(k=5))


BECOMES = {
    "widen_operands": (line(b=0), payload()),
    "widen_operands_both": (line(), payload("bf16", 3, 5, 19)),
}
SHOWN = [(line(b=0), payload())]
REFUSED = [
    (line(), payload("f32"), r"A: found tensor<8x32xf32>, allowed matrices of bf16 or f16"),
    (line(a=0), payload("i8", sums="i32"), r"B: found tensor<32x16xi8>, allowed matrices of bf16 or f16"),
    (line(), COMPUTED, "A: found a computed tensor, allowed an argument"),
]
UNCHANGED = [(line(a=0, b=0), payload(), "neither operand is named")]
