"""Fusions on a GPU: right, a launch for each, weights copied once; rows, elements, matmuls with epilogues."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.gpu.fusions import simulated as on_gpu
from tests.gpu.fusions.simulated import SIMULATOR, compiled, simulated, without_fusions
from tests.models.fusions.payload_text import PayloadText
from tests.models.kernel_programs import called
from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.device_programs import DeviceOptions
from tuner.core.errors import CandidateError, DeviceError
from tuner.core.fusions import LOOPS, Fusion
from tuner.gpu.fusions.element_kernels import fusion_function, launch_elements
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.run.device_function import DeviceFunction
from tuner.mlir.bindings import ir
from tuner.mlir.transform import new_context

pytestmark = pytest.mark.mlir
RNG = np.random.default_rng(5)
EXAMPLES = Path(__file__).parents[3] / "examples"
SOFTMAX = EXAMPLES / "softmax.mlir"


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def launched(count: int, text: str, given: Sequence[Any], wanted: Any) -> on_gpu.Simulated:
    """Calls a program, which must give what is wanted by so many launches."""
    ran = simulated(text, *given)
    on_gpu.require_close(ran.results[0], wanted)
    assert ran.work.launches == count
    return ran


@pytest.mark.slow
def test_a_layer_with_bias_and_relu_is_one_launch_and_its_weights_stay_on_the_device() -> None:
    payload, given = PayloadText(), numbers(32, 64)
    layers = [(numbers(64, 128), numbers(128)), (numbers(128, 32), numbers(32))]
    value, wanted = payload.argument(32, 64), given.astype(np.float64)
    for matrix, bias in layers:
        product = payload.matmul(value, payload.weight(matrix))
        value = payload.unary("relu", payload.binary("add", product, payload.weight(bias)))
        wanted = np.maximum(wanted @ matrix + bias, 0)
    text = payload.text(value)
    ran = launched(2, text, [given], wanted)
    assert (ran.work.copied_in_bytes, ran.work.copied_out_bytes) == (given.nbytes, 4 * 32 * 32)
    weights_bytes = sum(each.nbytes for layer in layers for each in layer)
    resident_bytes = sum(len(each.content) for each in ran.compiled.code.resident)
    assert ran.loaded.copied_in_bytes == weights_bytes == resident_bytes
    before = without_fusions(text)
    assert before.launches > 2
    assert before.copied_in_bytes >= given.nbytes + weights_bytes


@pytest.mark.slow
def test_independent_products_stay_apart_and_one_of_another_takes_the_sum_of_both() -> None:
    arrays = [numbers(64, 128), numbers(128, 64), numbers(64, 96), numbers(96, 64)]
    wanted = arrays[0].astype(np.float64) @ arrays[1] + arrays[2].astype(np.float64) @ arrays[3]
    ran = simulated((EXAMPLES / "two_matmuls.mlir").read_text(), *arrays)
    on_gpu.require_close(ran.results[0], wanted)
    first, second, _ = ran.streams  # the sum is a kernel of its own
    assert first != second
    payload, weight = PayloadText(), numbers(32, 32)
    hidden = payload.matmul(payload.argument(16, 32), payload.weight(weight))
    text = payload.text(payload.binary("add", payload.matmul(hidden, payload.weight(weight)), hidden))
    x = numbers(16, 32)
    wanted = x.astype(np.float64) @ weight
    launched(2, text, [x], wanted @ weight + wanted)


def test_a_softmax_and_a_layer_norm_are_one_launch() -> None:
    text, x = SOFTMAX.read_text(), numbers(40, 96)
    x[3, 5], x[4], x[5, ::2] = np.nan, -np.inf, -np.inf
    ran = simulated(text, x)
    with np.errstate(invalid="ignore"):
        powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        wanted = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ran.results[0], wanted, rtol=2e-6, atol=1e-9)
    assert ran.work.launches == 1 < without_fusions(text).launches
    x, scale, shift = numbers(6, 75), numbers(75), numbers(75)
    wide = x.astype(np.float64)
    centered = wide - wide.mean(axis=1, keepdims=True)
    wanted = centered / np.sqrt((centered**2).mean(axis=1, keepdims=True) + 1e-5) * scale + shift
    launched(1, on_gpu.LAYER_NORM, [x, scale, shift], wanted)
    assert without_fusions(on_gpu.LAYER_NORM).launches > 1


def test_a_convolution_is_one_launch_after_padding_gate_and_up_are_two() -> None:
    x, w, scale, shift = numbers(1, 3, 7, 6), numbers(4, 3, 3, 3), numbers(4), numbers(4)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    sums = np.einsum("ncyxhw,fchw->nfyx", windows, w)
    wanted = np.maximum(sums * scale[:, None, None] + shift[:, None, None], 0)
    ran = launched(2, on_gpu.CONVOLUTION, [x, w, scale, shift], wanted)
    assert without_fusions(on_gpu.CONVOLUTION).launches > 2
    assert [each.is_written for each in ran.compiled.code.resident] == [True]  # the padding is there
    payload, gate, up = PayloadText(), numbers(64, 128), numbers(64, 128)
    a = payload.argument(32, 64)
    products = [payload.matmul(a, payload.weight(each)) for each in (gate, up)]
    text = payload.text(payload.binary("mul", payload.unary("relu", products[0]), products[1]))
    given = numbers(32, 64)
    wide = given.astype(np.float64)
    ran = launched(2, text, [given], np.maximum(wide @ gate, 0) * (wide @ up))
    assert without_fusions(text).launches > 2
    assert [each.reason for each in ran.compiled.code.fusions] == [""]


def test_programs_that_compute_nothing_or_have_dynamic_sizes_are_compiled_as_a_whole() -> None:
    payload = PayloadText()
    text, given = payload.text(payload.transpose(payload.argument(4, 6), (1, 0))), numbers(4, 6)
    assert compiled(text).why_no_fusions == "nothing is computed: the host copies what is copied"
    np.testing.assert_array_equal(simulated(text, given).results[0], given.T)
    made = compiled(text_beside(__file__, "DYNAMIC"))
    assert (made.code.fusions, made.code.resident) == ((), ())
    assert "dynamic size" in made.why_no_fusions


@pytest.mark.parametrize("form", ["tokens", "sync"])
def test_other_forms_give_the_same(form: Any) -> None:
    text, x = SOFTMAX.read_text(), numbers(40, 96)
    code = compiler_of(SIMULATOR).compile(text, options=DeviceOptions(form=form), as_fusions=True).code
    np.testing.assert_array_equal(called(code, x), simulated(text, x).results[0])


def test_a_batch_of_matmuls_is_one_launch_and_a_sum_that_many_elements_need_is_refused() -> None:
    payload = PayloadText()
    a, b = payload.argument(3, 5, 7), payload.argument(3, 7, 6)
    given = [numbers(*each.shape) for each in (a, b)]
    text = payload.text(payload.unary("exp", payload.matmul(a, b)))
    launched(1, text, given, np.exp(given[0].astype(np.float64) @ given[1]))
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @f(%a: memref<4x8xf32>, %b: memref<4x8xf32>) { return }")
        block = module.body.operations[0].regions[0].blocks[0]
        fusion = Fusion(LOOPS, text_beside(__file__, "SHARED_SUM"), (), (), ())
        function = fusion_function(fusion, list(block.arguments), is_generalized=True)
        refused = pytest.raises(CandidateError, match="several elements need the same sum")
        with ir.InsertionPoint.at_block_begin(block), refused:
            launch_elements(function)


def test_rows_of_a_table_are_gathered_and_an_index_outside_is_an_error_of_the_call() -> None:
    rows, table = np.array([8, 0, 3, 3, 1]), numbers(9, 8)
    ran = simulated(on_gpu.ROWS_OF_A_TABLE, rows, table)
    np.testing.assert_array_equal(ran.results[0], table[rows])
    assert ran.work.launches == 1
    program = DeviceFunction(compiled(on_gpu.ROWS_OF_A_TABLE).code, SimulatedDevice("sm_90"))
    with pytest.raises(DeviceError, match="an index into tensor<9x8xf32> is outside of dimension 0"):
        program(np.array([0, 1, 9, 0, 0]), np.zeros((9, 8), np.float32))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("columns", [1, 31, 33, 300])
def test_rows_of_any_length_are_one_launch(columns: int) -> None:
    payload, x = PayloadText(), numbers(3, columns)
    powers = np.exp(x.astype(np.float64))
    text = payload.text(payload.softmax(payload.argument(3, columns)))
    launched(1, text, [x], powers / powers.sum(axis=1, keepdims=True))


@pytest.mark.slow
def test_a_largest_number_keeps_nan_and_infinities() -> None:
    payload, x = PayloadText(), numbers(4, 70)
    x[0, 69], x[1], x[2, 40] = np.nan, -np.inf, np.inf
    ran = simulated(payload.text(payload.reduced("max", payload.argument(4, 70))), x)
    np.testing.assert_array_equal(ran.results[0], x.max(axis=1))
    assert ran.work.launches == 1


def test_a_number_for_each_row_is_computed_once_and_an_index_by_a_thread_for_each() -> None:
    payload, given = PayloadText(), numbers(2, 3, 40) / 8
    x = payload.argument(2, 3, 40)
    total = payload.unary("exp", payload.reduced("sum", x))
    ran = simulated(payload.text(payload.by_row("mul", x, total), total), given)
    powers = np.exp(given.astype(np.float64).sum(axis=2))
    on_gpu.require_close(ran.results[0], given * powers[..., None])
    on_gpu.require_close(ran.results[1], powers)
    given = numbers(5, 9)
    ran = simulated(text_beside(__file__, "ARGMAX"), given)
    np.testing.assert_array_equal(ran.results[0], given.argmax(axis=1))
    assert ran.work.launches == 1


@pytest.mark.slow
def test_an_epilogue_reads_matrices_rows_and_columns() -> None:
    payload = PayloadText()
    shapes = ((32, 64), (64, 32), (32, 32), (32,), (32,))
    x, w, residual, bias, scale = (payload.argument(*each) for each in shapes)
    sums = payload.binary("add", payload.matmul(x, w), bias)
    text = payload.text(payload.binary("add", payload.by_row("mul", sums, scale), residual))
    given = [numbers(*shape) for shape in shapes]
    wide = given[0].astype(np.float64)
    ran = launched(1, text, given, (wide @ given[1] + given[3]) * given[4][:, None] + given[2])
    assert [problem.key for problem in ran.compiled.problems] == ["matmul 32x32x64 f32 nn none"]


@pytest.mark.slow
def test_equal_layers_have_one_kernel_and_a_result_among_others_one_apart_with_its_reason() -> None:
    payload, given = PayloadText(), numbers(32, 64)
    value, wanted = payload.argument(32, 64), given.astype(np.float64)
    for array in (numbers(64, 64) / 8 for _ in range(3)):
        value = payload.unary("tanh", payload.matmul(value, payload.weight(array)))
        wanted = np.tanh(wanted @ array)
    ran = launched(3, payload.text(value), [given], wanted)
    assert len(set(ran.kernels)) == 1
    payload = PayloadText()
    x, w, other = payload.argument(32, 64), payload.argument(64, 32), payload.argument(32, 8)
    product = payload.unary("exp", payload.matmul(x, w))
    text = payload.text(payload.concatenated([product, payload.unary("exp", other)], 1))
    a, b, beside = numbers(32, 64) / 8, numbers(64, 32) / 8, numbers(32, 8)
    ran = simulated(text, a, b, beside)
    wanted = np.exp(np.concatenate([a.astype(np.float64) @ b, beside], axis=1))
    on_gpu.require_close(ran.results[0], wanted)
    reasons = [fusion.reason for fusion in ran.compiled.code.fusions]
    assert any("not rows of f32" in reason for reason in reasons)
    assert ran.work.launches == 1 + len(reasons)


@pytest.mark.slow
def test_counted_is_what_a_call_does() -> None:
    of_convolution = ((1, 3, 7, 6), (4, 3, 3, 3), (4,), (4,))
    for text, shapes in ((SOFTMAX.read_text(), ((40, 96),)), (on_gpu.CONVOLUTION, of_convolution)):
        arguments = [np.ones(shape, np.float32) for shape in shapes]
        assert without_fusions(text) == simulated(text, *arguments, as_fusions=False).work


def test_launches_in_a_loop_are_not_counted() -> None:
    assert compiler_of(SIMULATOR).work_without_fusions(text_beside(__file__, "LOOP"), None) is None


@pytest.mark.slow
def test_an_encoder_that_torch_exports_is_ten_launches() -> None:
    pytest.importorskip("torch", reason="torch is not installed: it makes the export")
    from tests.models.exports import corpus, export

    made, text = corpus.built("encoder"), corpus.text_of("encoder")
    arguments = [export.array_of(each) for each in made.inputs]
    ran = simulated(text, *arguments)
    export.require_equal(ran.results, made.expected, corpus.EXPORTS["encoder"].tolerance)
    before = without_fusions(text)
    assert (len(ran.compiled.code.fusions), ran.work.launches) == (10, 10)
    assert before.launches == 58
    assert ran.work.copied_in_bytes == sum(each.nbytes for each in arguments) < before.copied_in_bytes
