"""Payloads become fusions: how many, of which kinds, and what is refused."""

import hashlib
import re

import numpy as np
import pytest

from tests.programs.file_check import cases
from tests.programs.fusions.grouped_execution import FusedFunction, formed, host_function
from tests.programs.fusions.payload_text import PayloadText, Tensor, with_weights
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.core.fusions import RESULT, TEMPORARY, WEIGHT, FusedProgram
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.programs.fusion_compiler import initialized
from tuner.programs.fusions.hoisting import init_parts
from tuner.programs.fusions.payload import NotFused
from tuner.programs.fusions.pipeline import fuse_program

pytestmark = pytest.mark.mlir

RNG = np.random.default_rng(0)


def weight(payload: PayloadText, *shape: int) -> Tensor:
    return payload.weight(RNG.standard_normal(shape) / shape[-1])


def linear(payload: PayloadText, value: Tensor, size: int) -> Tensor:
    """A linear layer as torch-mlir writes it: its weights are transposed at each call."""
    turned = payload.transpose(weight(payload, size, value.shape[-1]), (1, 0))
    return payload.binary("add", payload.matmul(value, turned), weight(payload, size))


def mlp() -> str:
    payload = PayloadText()
    hidden = payload.unary("relu", linear(payload, payload.argument(4, 6), 8))
    return payload.text(linear(payload, hidden, 8))


def gated() -> str:
    payload = PayloadText()
    x = payload.argument(4, 6)
    gate, up = (payload.matmul(x, weight(payload, 6, 8)) for _ in range(2))
    return payload.text(payload.binary("mul", payload.unary("tanh", gate), up))


CASES = {
    "mlp": "contraction contraction",
    "gated": "contraction",
    "layer_norm": "rows",
    "broadcast_b": "loops",
    "attention": "contraction elementwise contraction rows contraction contraction",
    "convolution": "elementwise convolution convolution",
    "reshaped_after_a_matmul": "contraction",
    "one_b_for_a_batch": "contraction",
    "transposed_b": "contraction",
    "moved": " ".join(["elementwise"] * 5),
    "overwritten": " ".join(["elementwise"] * 10),
}


def text_of(name: str) -> str:
    built = {"mlp": mlp, "gated": gated}
    return built[name]() if name in built else with_weights(text_beside(__file__, name))


@pytest.mark.parametrize("name", CASES)
def test_a_payload_becomes_the_expected_kinds_of_fusions(name: str) -> None:
    assert " ".join(fusion.kind for fusion in formed(text_of(name)).program.fusions) == CASES[name]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CASES)
def test_fusions_compute_what_the_payload_computes(name: str) -> None:
    text = text_of(name)
    program = formed(text)
    whole, fusions = host_function(text), FusedFunction(program)
    for _ in range(2):
        arguments = [RNG.standard_normal(each.shape).astype(np.float32) for each in program.program.arguments]
        expected = whole(*arguments)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for one, other in zip(fusions(*arguments), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_the_text_has_no_weights_init_transposes_them_and_results_are_the_callers() -> None:
    program = formed(mlp())
    (last,) = program.program.fusions[-1].outputs
    assert program.program.buffers[last.buffer].owner == RESULT
    assert [buffer.owner for buffer in program.program.buffers].count(TEMPORARY) == 1
    assert sorted(array.shape for array in program.weights) == [(8,), (8,), (8, 6), (8, 8)]
    assert "linalg.matmul" not in program.program.init
    assert program.program.init.count("linalg.generic") == 2
    texts = [program.program.init, *(fusion.text for fusion in program.program.fusions)]
    assert not any("dense_resource" in text for text in texts)


SHAPES = ((6, (2, 3)), (6, (2, 3)), (2, (2,)))
INIT = text_beside(__file__, "INIT")


def test_what_weights_decide_is_computed_in_parts_that_share_nothing_but_free_operations() -> None:
    with transform.new_context(), ir.Location.unknown():
        first, kept, both = init_parts(INIT)
        again, *_ = init_parts(INIT.replace("@init(%a", "@init(%x").replace("ins(%a", "ins(%x"))
    assert [(part.inputs, part.results) for part in (first, kept, both)] == [
        *(((0,), (0,)), ((2,), (1,)), ((1,), (2, 3)))
    ]
    assert kept.text == ""
    assert again.text == first.text  # compiled once
    assert "absf" not in first.text
    assert both.text.count("linalg.transpose") == 1


def test_the_parts_of_init_give_its_results_in_order() -> None:
    arrays = tuple(np.arange(size, dtype=np.float32).reshape(shape) - 2 for size, shape in SHAPES)
    program = FusedProgram((), (), (), (), INIT)
    a, b, c = arrays
    for found, expected in zip(initialized(program, arrays), (a.T, c, b.T, abs(b.T)), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_gate_and_up_are_one_fusion_of_two_contractions_whose_weights_need_no_init() -> None:
    program = formed(gated())
    assert program.program.init == ""
    assert [array.shape for array in program.weights] == [(6, 8), (6, 8)]
    (fusion,) = program.program.fusions
    assert fusion.text.count("linalg.matmul {contraction}") == 2
    assert fusion.text.count("{tuner.weight}") == 2
    assert fusion.text.count("{root}") == 1
    assert fusion.ops == ("linalg.matmul", "linalg.matmul", "math.tanh", "arith.mulf")


def test_heads_of_an_attention_are_views_and_only_keys_are_transposed() -> None:
    program = formed(text_of("attention")).program
    transposes = [fusion for fusion in program.fusions if fusion.ops == ("linalg.transpose",)]
    assert len(transposes) == 1
    queries, _ = program.fusions[2].inputs
    assert queries.strides == (4, 24, 1)
    (mixed,) = program.fusions[4].outputs
    assert (mixed.type.shape, mixed.strides) == ((2, 5, 4), (4, 8, 1))


def test_a_producer_writes_inside_of_the_padding_of_its_reader() -> None:
    program = formed(text_of("convolution")).program
    padded = [number for number, each in enumerate(program.buffers) if each.padding is not None]
    assert [program.buffers[number].padding for number in padded] == [0.0, 0.0]
    (inside,) = program.fusions[1].outputs
    assert inside.buffer in padded
    assert inside.offset == 9
    assert program.fusions[2].inputs[0].buffer in padded


def test_a_number_for_each_row_is_computed_once_for_each_row() -> None:
    (fusion,) = formed(text_of("layer_norm")).program.fusions
    assert fusion.text.count("math.exp") == 1
    power = next(line for line in fusion.text.splitlines() if "math.exp" in line)
    generic = fusion.text[: fusion.text.index(power)].rsplit("linalg.generic", 1)[1]
    assert 'iterator_types = ["parallel"]' in generic


def test_identical_fusions_have_one_text_whatever_surrounds_them() -> None:
    def keys(program: FusedProgram) -> list[str]:
        return [hashlib.sha256(fusion.text.encode()).hexdigest() for fusion in program.fusions]

    payload = PayloadText()
    x = payload.unary("tanh", payload.sliced(payload.argument(9, 8), [1, 0], [4, 8]))
    other = formed(payload.text(x, linear(payload, x, 8)))
    assert keys(formed(mlp()).program)[1] == keys(other.program)[-1]
    assert keys(formed(mlp()).program) == keys(formed(mlp()).program)


GATHER = text_beside(__file__, "GATHER")


def test_what_no_schedule_is_for_is_a_fusion_of_loops_with_its_reason() -> None:
    program = formed(GATHER)
    (fusion,) = program.program.fusions
    assert (fusion.kind, fusion.reason) == ("loops", "no schedule is for elements of type i64")
    rows, table = np.array([8, 0, 3]), RNG.standard_normal((9, 4)).astype(np.float32)
    np.testing.assert_array_equal(FusedFunction(program)(rows, table)[0], table[rows])


MAXIMUM = text_beside(__file__, "MAXIMUM")


def test_indices_of_a_maximum_that_nobody_uses_are_dropped() -> None:
    program = formed(MAXIMUM)
    (fusion,) = program.program.fusions
    assert fusion.kind == "rows"
    assert "i64" not in fusion.text
    x = RNG.standard_normal((3, 5)).astype(np.float32)
    np.testing.assert_array_equal(FusedFunction(program)(x)[0], x.max(1))


@pytest.mark.parametrize("element", ["f32", "f64", "f16", "bf16", "i64", "i32", "i8", "i1"])
def test_weights_of_each_element_type_are_read(element: str) -> None:
    numbers = {"f": "1.0, -2.5, 3.0", "b": "1.0, -2.5, 3.0", "i": "1, -2, 3"}[element[0]]
    numbers = "true, false, true" if element == "i1" else numbers
    text = f"""func.func @main(%x: tensor<3x{element}>) -> (tensor<3x{element}>, tensor<3x{element}>) {{
      %w = arith.constant dense<[{numbers}]> : tensor<3x{element}>
      return %x, %w : tensor<3x{element}>, tensor<3x{element}>
    }}"""
    program = formed(text)
    (found,) = program.weights
    wanted = [True, False, True] if element == "i1" else [float(each) for each in numbers.split(",")]
    np.testing.assert_array_equal(found.astype(np.float64), wanted)
    assert [buffer.type.element for buffer in program.program.buffers if buffer.owner == WEIGHT] == [element]


@pytest.mark.parametrize(("options", "text"), cases(text_beside(__file__, "REFUSED")))
def test_a_program_that_must_stay_whole_is_refused_with_its_reason(
    options: dict[str, str], text: str
) -> None:
    refused = fuse_program(text)
    assert isinstance(refused, NotFused)
    assert re.search(options["refused"], refused.reason)
    assert "\n" not in refused.reason


CONSTANT = "%w = arith.constant dense_resource<w> : tensor<9xf32>"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            f"func.func @main() -> tensor<9xf32> {{\n{CONSTANT}\nreturn %w : tensor<9xf32>\n}}",
            "dense_resource<w> has no data after the module",
        ),
        ("func.func @main() {", "payload: "),
    ],
)
def test_constants_without_data_and_text_that_does_not_parse_are_refused(text: str, reason: str) -> None:
    with pytest.raises(CandidateError, match=reason):
        fuse_program(text)
