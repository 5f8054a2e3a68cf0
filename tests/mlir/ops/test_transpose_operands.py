"""``tuner.transpose_operands``: which operands of a matmul become transposes."""

from tests.mlir.ops.one_op import apply
from tests.texts import filled

LINE = '"tuner.transpose_operands"(%func) : (!transform.any_op) -> ()'
NN = filled(__file__, "NN")


def with_maps(left: str, right: str) -> str:
    sizes = {"m_k": "64x32", "k_m": "32x64", "k_n": "32x16", "n_k": "16x32"}
    return filled(__file__, "WITH_MAPS", left=left, right=right, of_a=sizes[left], of_b=sizes[right])


def test_of_a_transposed_b_both_operands_become_transposes() -> None:
    text = apply(LINE, with_maps("m_k", "n_k"))
    assert text.count("linalg.transpose") == 2
    assert "tensor<32x64xf32>, tensor<32x16xf32>" in text
    assert "(d0, d1, d2) -> (d2, d0)" in text
    assert "(d0, d1, d2) -> (d2, d1)" in text


BECOMES = {"transpose_operands": (LINE, NN)}
UNCHANGED = [(LINE, with_maps("k_m", "k_n"), "operands of which none has rows along K")]
