import pytest

from tests.programs.lowering.compiled import module_text

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.bufferize")

T = "tensor<8x8xf32>"
FILL = f"""%zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {T}
  %clear = linalg.fill ins(%zero : f32) outs(%empty : {T}) -> {T}"""


def matmul(name: str, start: str) -> str:
    return f"%{name} = linalg.matmul ins(%a, %b : {T}, {T}) outs(%{start} : {T}) -> {T}"


def bufferized(body: str, results: str) -> str:
    kinds = ", ".join([T] * len(results.split(",")))
    function = f"func.func @f(%a: {T}, %b: {T}, %c: {T}) -> ({kinds}) {{ {body} return {results} : {kinds} }}"
    return module_text(function, lambda _payload: None)


def test_two_matmuls_from_one_fill_get_one_each() -> None:
    text = bufferized(f"{FILL} {matmul('x', 'clear')} {matmul('y', 'clear')}", "%x, %y")
    assert text.count("linalg.fill") == 2
    assert "memref.copy" not in text


def test_a_fill_of_one_user_stays_one() -> None:
    text = bufferized(f"{FILL} {matmul('x', 'clear')}", "%x")
    assert text.count("linalg.fill") == 1


def test_a_fill_of_an_argument_is_left_alone() -> None:
    fill = f"%zero = arith.constant 0.0 : f32 %clear = linalg.fill ins(%zero : f32) outs(%c : {T}) -> {T}"
    text = bufferized(f"{fill} {matmul('x', 'clear')} {matmul('y', 'clear')}", "%x, %y")
    assert text.count("linalg.fill") == 1
