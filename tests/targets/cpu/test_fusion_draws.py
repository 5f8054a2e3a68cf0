"""Draws of a fusion: what its marks promise, special numbers that show, bytes over all of K."""

import re

import numpy as np
import pytest

from tests import byte_fusion_texts as byte_texts
from tests import fusion_texts as texts
from tests.fusion_runs import as_problem
from tests.mlir.attention_texts import Attention
from tests.mlir.convolution_texts import Convolution
from tests.targets.evaluation import rng
from tests.tuning.fakes import present
from tuner.core.errors import CandidateError
from tuner.core.interfaces import Script
from tuner.core.matmul import Matmul
from tuner.core.problem_classes import TextProblem
from tuner.core.quantization import WeightFormat, quantized_text
from tuner.mlir.fusions.function import fusion_arguments
from tuner.mlir.fusions.hidden_keys import attention_mask, with_visible_band
from tuner.mlir.reference.fusion_reference import Expected, as_marked
from tuner.runtime.cpu.host import describe_machine
from tuner.space.scripts.choice import first_configuration
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator
from tuner.targets.cpu.fusion_arrays import _require_equal
from tuner.targets.cpu.fusion_draws import Draw, FusionDraws, _positive, view_of

pytestmark = pytest.mark.mlir
EXP = texts.elementwise((6, 30), "math.exp %x0")

FILLED = """%two = arith.constant 2.0 : f32
      %t = bufferization.to_tensor %c restrict writable : memref<4xf32> to tensor<4xf32>
      %r = linalg.fill {tuner.root} ins(%two : f32) outs(%t : tensor<4xf32>) -> tensor<4xf32>
      bufferization.materialize_in_destination %r in restrict writable %c
        : (tensor<4xf32>, memref<4xf32>) -> ()
      return
"""


def draws_of(problem: TextProblem) -> FusionDraws:
    return FusionDraws(problem, rng())


def special_numbers(draw: Draw, number: int) -> list[float]:
    """Returns the sorted numbers of an input that are not finite, NaN last."""
    memory = draw.inputs[number].astype(np.float64)
    return [float(each) for each in np.sort(memory[~np.isfinite(memory)])]


@pytest.mark.parametrize(
    ("kind", "text", "inputs"),
    [
        ("rows", texts.softmax(9, 17), [0]),
        ("rows", texts.layer_norm(30, 60), [0, 1, 2]),
        ("contraction", texts.product(8, 40, 16, "gelu"), [0, 2]),
        ("contraction", texts.product(8, 40, 16, "residual", element="bf16", sums="f32"), [0, 2]),
        ("convolution", Convolution(epilogue="residual", images=3).text(), [0, 2, 3]),
        ("elementwise", EXP, [0]),
    ],
)
def test_each_input_has_nan_and_both_infinities_in_a_draw(kind: str, text: str, inputs: list[int]) -> None:
    (draw,) = draws_of(as_problem(kind, text)).special
    for number in range(len(draw.inputs)):
        found = special_numbers(draw, number)
        if number in inputs:
            assert found[:2] == [-np.inf, np.inf]
            assert np.isnan(found[2:]).all()
            assert len(found) == 3
        else:
            assert not found
    shares = [np.isfinite(each.value).mean() for each in draw.expected]
    assert min(shares) >= 0.5


def test_where_one_number_hides_the_result_each_has_a_draw_of_its_own() -> None:
    draws = draws_of(as_problem("rows", texts.softmax(1, 17))).special
    assert [str(special_numbers(each, 0)) for each in draws] == ["[nan]", "[inf]", "[-inf]"]
    assert [bool(np.isnan(each.expected[0].value).all()) for each in draws] == [True, True, False]
    draws = draws_of(as_problem("contraction", texts.product(1, 40, 16, "bias_relu"))).special
    assert any(np.isfinite(each.inputs[0]).all() and np.isnan(each.inputs[2]).any() for each in draws)


def test_numbers_that_become_integers_stay_usual() -> None:
    (draw,) = draws_of(as_problem("elementwise", byte_texts.quantized((6, 30)))).special
    assert np.isfinite(draw.inputs[0]).all()


def test_bytes_are_extreme_over_all_of_k_and_sums_are_no_numbers_of_f32() -> None:
    draws = draws_of(as_problem("contraction", byte_texts.product(4, 16, 2048)))
    (draw,) = draws.special
    (sums,) = (each.value for each in draw.expected)
    assert sums.max() > 2**24
    assert sums.min() < -(2**24)
    assert (sums.astype(np.float32) != sums).any()


@pytest.mark.parametrize("bits", [4, 8])
def test_quantized_rows_and_weights_are_extreme_over_all_of_k(bits: int) -> None:
    text = quantized_text((3, 8, 2048), "f32", WeightFormat(bits, 0, "f32", False, "row"))
    draws = draws_of(as_problem("quantized_matmul", text))
    q = draws.first.inputs[1].reshape(8, 2048)
    least, greatest = (-8, 7) if bits == 4 else (-128, 127)
    assert np.count_nonzero(q[0] == least) >= 2048 - 3 - 4  # lines along the other dimension cross it
    assert np.count_nonzero(q[4] == greatest) >= 2048 - 3 - 4
    (draw,) = draws.special
    rows = draw.inputs[0].reshape(3, 2048)
    assert (np.abs(rows[1:]) == np.abs(rows[1:, :1])).all()
    assert np.count_nonzero(np.isnan(draw.expected[0].value).all(axis=1)) == 1


def test_a_mask_of_truths_has_both() -> None:
    draws = draws_of(as_problem("attention", Attention((12, 20, 16, 24), mask="seen").text()))
    assert set(draws.first.inputs[2].tolist()) == {False, True}


def test_an_attention_whose_mask_hides_keys_is_verified_with_a_mask_that_does() -> None:
    """Its kernel skips these keys; a mask of random numbers hides none."""
    text = Attention((64, 64, 16, 24), mask="bias").text()
    marked = with_visible_band(text, present(attention_mask(text)), (-63, 0))
    problem = as_problem("attention", marked)
    draws = draws_of(problem)
    arguments = [each for each in fusion_arguments(problem.text) if not each.is_output]
    views = [view_of(*pair) for pair in zip(draws.first.inputs, arguments, strict=True)]
    assert np.isneginf(views[2]).sum() == 64 * 63 // 2
    assert all(map(np.array_equal, views, as_marked(problem.text, tuple(views))))
    found = present(first_configuration(problem, describe_machine()))
    script = Script.of(found[1].text)
    cpu = CpuEvaluator(1)
    loaded = cpu.load(problem, CpuCompiler().compile(problem, script))
    assert cpu.verify(problem, loaded, rng()).max_error <= 1.0
    cpu.verify_on_extremes(problem, (loaded,), rng())


def test_equal_infinities_are_not_among_the_wrong_elements_that_a_message_names() -> None:
    expected = Expected(np.array([np.inf, -np.inf, np.nan, 1.0]), np.full(4, 0.5))
    message = re.escape("output 0: 1 of 4 elements are wrong; worst at [3]: found 2, expected 1")
    with pytest.raises(CandidateError, match=f"^{message}$"):
        _require_equal("output 0", expected, np.array([np.inf, -np.inf, np.nan, 2.0], np.float32))


@pytest.mark.parametrize("epilogue", ["bias", "residual", "bias_residual", "accumulate"])
def test_integers_that_are_added_to_sums_have_any_size_and_no_sum_overflows(epilogue: str) -> None:
    problem = Matmul(8, 40, 64, "i8", epilogue=epilogue, weights="constant")
    assert isinstance(problem, TextProblem)
    draws = draws_of(problem)
    for draw in (*draws.usual, *draws.special, draws.extreme(rng())):
        added = [memory.astype(np.int64) for memory in draw.inputs if memory.dtype == np.int32]
        assert all(np.abs(numbers).max() > 2**28 for numbers in added)
        assert all((np.abs(numbers) <= 2**17).mean() > 0.25 for numbers in added)
        largest = sum(np.abs(numbers).max() for numbers in added) + 64 * 2**14
        assert largest < 2**31
        (expected,) = draw.expected
        as_float = expected.value.astype(np.float32).astype(np.float64)
        assert (as_float != expected.value).any()  # sums in f32 are wrong


def test_positive_bytes_are_positive_and_within_their_type() -> None:
    drawn = np.array([-128, -8, -1, 0, 5, 127], np.int8)
    positive = _positive(drawn)
    assert positive.dtype == np.int8
    assert positive.tolist() == [127, 7, 1, 1, 5, 127]


def test_a_fusion_without_inputs_has_a_draw() -> None:
    empty = "func.func @fusion(%c: memref<4xf32>) {\n" + FILLED + "}"
    (draw,) = draws_of(as_problem("elementwise", empty)).special
    assert draw.inputs == ()
    np.testing.assert_array_equal(draw.expected[0].value, np.full(4, 2.0))
