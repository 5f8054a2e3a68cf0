"""Layers of models as fusions on a GPU: right, a launch for each fusion, weights copied once."""

from pathlib import Path

import numpy as np
import pytest

from tests.programs.fusions.payload_text import PayloadText
from tests.programs.gpu_fusions.group_texts import CONVOLUTION, LAYER_NORM
from tests.programs.gpu_fusions.simulated import compiled, require_close, simulated, without_fusions
from tests.texts import text_beside

pytestmark = pytest.mark.mlir

RNG = np.random.default_rng(5)
EXAMPLES = Path(__file__).parents[3] / "examples"


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.slow
def test_a_layer_with_bias_and_relu_is_one_launch_and_its_weights_stay_on_the_device() -> None:
    payload, arrays = PayloadText(), [numbers(64, 128), numbers(128), numbers(128, 32), numbers(32)]
    x = value = payload.argument(32, 64)
    for matrix, bias in (arrays[:2], arrays[2:]):
        product = payload.matmul(value, payload.weight(matrix))
        value = payload.unary("relu", payload.binary("add", product, payload.weight(bias)))
    text, given = payload.text(value), numbers(*x.shape)
    ran = simulated(text, given)
    wanted = given.astype(np.float64)
    for matrix, bias in (arrays[:2], arrays[2:]):
        wanted = np.maximum(wanted @ matrix + bias, 0)
    require_close(ran.results[0], wanted)
    assert ran.work.launches == 2
    assert (ran.work.copied_in_bytes, ran.work.copied_out_bytes) == (given.nbytes, 4 * 32 * 32)
    weights_bytes = sum(each.nbytes for each in arrays)
    assert (
        ran.loaded.copied_in_bytes
        == weights_bytes
        == sum(len(each.content) for each in ran.compiled.code.resident)
    )
    before = without_fusions(text)
    assert before.launches > ran.work.launches
    assert before.copied_in_bytes >= given.nbytes + weights_bytes


@pytest.mark.slow
def test_independent_products_stay_apart_and_run_on_streams_of_their_own() -> None:
    arrays = [numbers(64, 128), numbers(128, 64), numbers(64, 96), numbers(96, 64)]
    ran = simulated((EXAMPLES / "two_matmuls.mlir").read_text(), *arrays)
    wanted = arrays[0].astype(np.float64) @ arrays[1] + arrays[2].astype(np.float64) @ arrays[3]
    require_close(ran.results[0], wanted)
    assert ran.work.launches == 3  # the sum is a kernel of its own
    first, second, _ = ran.streams
    assert first != second


@pytest.mark.slow
def test_a_product_of_another_product_takes_the_sum_of_both() -> None:
    payload, weight = PayloadText(), numbers(32, 32)
    hidden = payload.matmul(payload.argument(16, 32), payload.weight(weight))
    text, x = (
        payload.text(payload.binary("add", payload.matmul(hidden, payload.weight(weight)), hidden)),
        numbers(16, 32),
    )
    wanted = x.astype(np.float64) @ weight
    ran = simulated(text, x)
    require_close(ran.results[0], wanted @ weight + wanted)
    assert ran.work.launches == 2


def test_a_softmax_is_one_launch() -> None:
    text, x = (EXAMPLES / "softmax.mlir").read_text(), numbers(40, 96)
    x[3, 5], x[4], x[5, ::2] = np.nan, -np.inf, -np.inf
    ran = simulated(text, x)
    with np.errstate(invalid="ignore"):
        powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        wanted = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ran.results[0], wanted, rtol=2e-6, atol=1e-9)
    assert ran.work.launches == 1 < without_fusions(text).launches


def test_a_layer_norm_is_one_launch() -> None:
    x, scale, shift = numbers(6, 75), numbers(75), numbers(75)
    ran = simulated(LAYER_NORM, x, scale, shift)
    wide = x.astype(np.float64)
    centered = wide - wide.mean(axis=1, keepdims=True)
    wanted = centered / np.sqrt((centered**2).mean(axis=1, keepdims=True) + 1e-5) * scale + shift
    require_close(ran.results[0], wanted)
    assert ran.work.launches == 1 < without_fusions(LAYER_NORM).launches


def test_a_convolution_with_batch_norm_and_relu_is_one_launch_after_padding() -> None:
    x, w, scale, shift = numbers(1, 3, 7, 6), numbers(4, 3, 3, 3), numbers(4), numbers(4)
    ran = simulated(CONVOLUTION, x, w, scale, shift)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    sums = np.einsum("ncyxhw,fchw->nfyx", windows, w)
    wanted = np.maximum(sums * scale[:, None, None] + shift[:, None, None], 0)
    require_close(ran.results[0], wanted)
    assert ran.work.launches == 2 < without_fusions(CONVOLUTION).launches
    assert [each.is_written for each in ran.compiled.code.resident] == [True]  # the padding is there


def test_gate_and_up_are_two_launches() -> None:
    payload, gate, up = PayloadText(), numbers(64, 128), numbers(64, 128)
    x = payload.argument(32, 64)
    products = [payload.matmul(x, payload.weight(each)) for each in (gate, up)]
    text = payload.text(payload.binary("mul", payload.unary("relu", products[0]), products[1]))
    given = numbers(32, 64)
    ran = simulated(text, given)
    wide = given.astype(np.float64)
    require_close(ran.results[0], np.maximum(wide @ gate, 0) * (wide @ up))
    assert ran.work.launches == 2 < without_fusions(text).launches
    assert [each.reason for each in ran.compiled.code.fusions] == [""]


def test_a_program_that_computes_nothing_stays_on_the_host() -> None:
    payload = PayloadText()
    x = payload.argument(4, 6)
    text, given = payload.text(payload.transpose(x, (1, 0))), numbers(4, 6)
    assert compiled(text).why_no_fusions == "nothing is computed: the host copies what is copied"
    ran = simulated(text, given)
    np.testing.assert_array_equal(ran.results[0], given.T)


def test_a_program_of_dynamic_sizes_is_compiled_as_a_whole() -> None:
    made = compiled(text_beside(__file__, "DYNAMIC"))
    assert (made.code.fusions, made.code.resident) == ((), ())
    assert "dynamic size" in made.why_no_fusions


@pytest.mark.parametrize("form", ["tokens", "sync"])
def test_other_forms_give_the_same(form: str) -> None:
    from contextlib import closing

    from benchmarks.program_compiler import compiler_of
    from tests.programs.gpu_fusions.simulated import SIMULATOR
    from tuner.programs.request import DeviceOptions
    from tuner.programs.run.device_function import DeviceFunction
    from tuner.simulator.device.simulated_device import SimulatedDevice

    text, x = (EXAMPLES / "softmax.mlir").read_text(), numbers(40, 96)
    code = compiler_of(SIMULATOR).compile(text, options=DeviceOptions(form=form), as_fusions=True).code  # type: ignore[arg-type]
    device = SimulatedDevice("sm_90")
    with closing(DeviceFunction(code, device)) as program:
        np.testing.assert_array_equal(program(x), simulated(text, x).results[0])
    assert device.reports == ()
