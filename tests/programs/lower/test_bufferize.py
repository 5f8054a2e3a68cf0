import pytest

from tests.programs.lower.reading import EXP, T, read

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lower.bufferize")

ADD_IN_PLACE = f"""func.func @add(%x: {T}, %y: {T}) -> {T} {{
  %z = linalg.add ins(%x, %y : {T}, {T}) outs(%x : {T}) -> {T}
  return %z : {T}
}}
"""


def test_tensors_become_memrefs_and_results_stay_results() -> None:
    text = read(EXP)
    assert "tensor" not in text
    assert "-> memref<4xf32>" in text


def test_a_tensor_argument_is_never_written() -> None:
    text = read(ADD_IN_PLACE)
    assert "outs(%alloc" in text
    assert "outs(%arg" not in text


def test_a_returned_argument_is_a_copy_of_it() -> None:
    text = read(f"func.func @same(%x: {T}) -> {T} {{ return %x : {T} }}")
    assert "memref.copy %arg0" in text
    assert "return %alloc" in text


def test_arithmetic_on_tensors_becomes_an_op_on_memrefs() -> None:
    text = read(f"func.func @twice(%x: {T}) -> {T} {{ %y = arith.addf %x, %x : {T} return %y : {T} }}")
    assert "linalg.generic" in text
    assert "tensor" not in text
